// What a client is told when a request cannot be answered, in the shape that OpenAI's clients read.
#ifndef KVASIR_SERVER_API_ERROR_H_
#define KVASIR_SERVER_API_ERROR_H_

#include <string>
#include <string_view>

#include "base/result.h"

namespace kvasir::server {

// A value. Never holds a path, a version or a part of a prompt.
struct ApiError {
  int status = 400;     // HTTP
  std::string message;  // One line: the value and what is allowed.
  std::string param;    // The field at fault; empty: none.
  std::string code;     // A word for programs; empty: none.

  ApiError(int http_status, std::string text, std::string field = {}, std::string word = {})
      : status(http_status),
        message(std::move(text)),
        param(std::move(field)),
        code(std::move(word)) {}
  // kUsage and kBadData: 400, the request's fault. kExhausted: 429. kCancelled: 503. kIo and
  // kNumeric: 500; of kIo without its message, which may name a file.
  ApiError(const base::Error& error);  // NOLINT(google-explicit-constructor): KV_TRY converts.
};

template <typename T>
using ApiResult =
    BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, ApiError,
                                             BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

// {"error":{"message","type","param","code"}}; the type follows from the status.
std::string ErrorJson(const ApiError& error);

// "Bad Request" of 400, and so on, for the statuses this server sends.
std::string_view StatusText(int status);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_API_ERROR_H_
