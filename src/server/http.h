// HTTP requests and replies as values, without a network.
#ifndef KVASIR_SERVER_HTTP_H_
#define KVASIR_SERVER_HTTP_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api_error.h"

namespace kvasir::server {

// A request that has been read whole. Header values as they were sent; empty: not sent.
struct HttpRequest {
  std::string method;
  std::string target;  // As sent: path and query.
  std::string authorization;
  std::string content_type;
  std::string origin;
  std::string host;
  std::string body;

  std::string_view path() const {
    return std::string_view(target).substr(0, target.find_first_of("?#"));
  }
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // Further ones.
};

// The reply that tells an error; 429 and 503 say when to come back.
HttpReply ErrorReply(const ApiError& error);

struct HeadOptions {
  bool keep_alive = true;
  bool chunked = false;  // Else Content-Length, of the reply's body.
};

// Status line and headers, up to the empty line. Names no program and no version.
std::string ReplyHead(const HttpReply& reply, const HeadOptions& options);

// Appends one chunk of a chunked body; an empty text gives the last one.
void AppendChunk(std::string& out, std::string_view text);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_HTTP_H_
