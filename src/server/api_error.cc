#include "server/api_error.h"

#include "base/check.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

using base::ErrorCode;

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kBadData:
      return 400;
    case ErrorCode::kExhausted:
      return 429;
    case ErrorCode::kCancelled:
      return 503;
    case ErrorCode::kIo:
    case ErrorCode::kNumeric:
      return 500;
  }
  KV_CHECK(false);
}

std::string_view TypeOf(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

ApiError::ApiError(const base::Error& error)
    : status(StatusOf(error.code)),
      message(error.code == ErrorCode::kIo ? "the server could not read or write" : error.message),
      code(status == 429 ? "overloaded" : "") {}

std::string ErrorJson(const ApiError& error) {
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Member("message", error.message).Member("type", TypeOf(error.status));
  json.Key("param");
  error.param.empty() ? json.Null() : json.String(error.param);
  json.Key("code");
  error.code.empty() ? json.Null() : json.String(error.code);
  json.EndObject().EndObject();
  return json.Take();
}

std::string_view StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace kvasir::server
