#include "server/http.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace kvasir::server {

HttpReply ErrorReply(const ApiError& error) {
  HttpReply reply;
  reply.status = error.status;
  reply.body = ErrorJson(error);
  if (error.status == 429 || error.status == 503) reply.headers.emplace_back("Retry-After", "1");
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

std::string ReplyHead(const HttpReply& reply, const HeadOptions& options) {
  std::string head;
  auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", reply.status, StatusText(reply.status));
  fmt::format_to(out, "Date: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", fmt::gmtime(std::time(nullptr)));
  if (reply.status != 204) fmt::format_to(out, "Content-Type: {}\r\n", reply.content_type);
  if (options.chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (reply.status != 204) {
    fmt::format_to(out, "Content-Length: {}\r\n", reply.body.size());
  }
  head += "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
  for (const auto& [name, value] : reply.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  head += options.keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

void AppendChunk(std::string& out, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", text.size());
  out += text;
  out += "\r\n";
}

}  // namespace kvasir::server
