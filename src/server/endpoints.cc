#include "server/endpoints.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "server/static_files.h"

namespace kvasir::server {
namespace {

struct Rule {
  std::string_view path;
  Endpoint endpoint;
  std::string_view name;
  bool get = false;
  bool post = false;
  bool open = false;  // Without a key.
};

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kSessionPrefix = "/v1/sessions/";
constexpr Rule kRules[] = {
    {.path = "/", .endpoint = Endpoint::kPage, .name = "page", .get = true, .open = true},
    {.path = "/health", .endpoint = Endpoint::kHealth, .name = "health", .get = true, .open = true},
    {.path = "/ready", .endpoint = Endpoint::kReady, .name = "ready", .get = true, .open = true},
    {.path = "/metrics", .endpoint = Endpoint::kMetrics, .name = "metrics", .get = true},
    {.path = "/v1/models", .endpoint = Endpoint::kModels, .name = "models", .get = true},
    {.path = kModelPrefix, .endpoint = Endpoint::kModel, .name = "model", .get = true},
    {.path = kSessionPrefix, .endpoint = Endpoint::kSession, .name = "session", .post = true},
    {.path = "/v1/completions",
     .endpoint = Endpoint::kCompletions,
     .name = "completions",
     .post = true},
    {.path = "/v1/chat/completions", .endpoint = Endpoint::kChat, .name = "chat", .post = true},
    {.path = "/tokenize", .endpoint = Endpoint::kTokenize, .name = "tokenize", .post = true},
    {.path = "/detokenize", .endpoint = Endpoint::kDetokenize, .name = "detokenize", .post = true},
    {.path = "/kvasir/next", .endpoint = Endpoint::kNext, .name = "next", .post = true},
    {.path = "/kvasir/cache",
     .endpoint = Endpoint::kCache,
     .name = "cache",
     .get = true,
     .post = true},
};

bool Matches(const Rule& rule, std::string_view path) {
  if (rule.endpoint == Endpoint::kPage) return FindStaticFile(path) != nullptr;
  if (rule.endpoint != Endpoint::kModel && rule.endpoint != Endpoint::kSession) {
    return path == rule.path;
  }
  return path.starts_with(rule.path) && path.size() > rule.path.size();
}

// application/json, with or without parameters.
bool IsJson(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  return std::equal(type.begin(), type.end(), kJson.begin(), kJson.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

}  // namespace

std::string_view EndpointName(Endpoint endpoint) {
  if (endpoint == Endpoint::kPreflight) return "preflight";
  for (const Rule& rule : kRules) {
    if (rule.endpoint == endpoint) return rule.name;
  }
  KV_CHECK(false);
}

bool IsPublic(Endpoint endpoint) {
  return endpoint == Endpoint::kPreflight ||
         std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const Rule& rule) { return rule.endpoint == endpoint && rule.open; });
}

ApiResult<Endpoint> FindEndpoint(const HttpRequest& request) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& r) { return Matches(r, request.path()); });
  if (rule == std::end(kRules)) {
    return ApiError(404, "there is nothing at this path", {}, "unknown_path");
  }
  if (request.method == "OPTIONS") return Endpoint::kPreflight;
  const bool get = request.method == "GET" || request.method == "HEAD";
  const bool post = request.method == "POST";
  if (!(get && rule->get) && !(post && rule->post)) {
    return ApiError(405,
                    rule->get && rule->post ? "this path takes GET and POST"
                    : rule->get             ? "this path takes GET"
                                            : "this path takes POST",
                    {}, "method_not_allowed");
  }
  if (post && !IsJson(request.content_type)) {
    return ApiError(415, "the body must be declared as Content-Type: application/json", {},
                    "unsupported_media_type");
  }
  return rule->endpoint;
}

}  // namespace kvasir::server
