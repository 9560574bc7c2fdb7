// Which request means what.
#ifndef KVASIR_SERVER_ENDPOINTS_H_
#define KVASIR_SERVER_ENDPOINTS_H_

#include <string_view>

#include "server/http.h"

namespace kvasir::server {

enum class Endpoint {
  kPage,
  kHealth,
  kReady,
  kMetrics,
  kModels,
  kModel,  // /v1/models/ID
  kCompletions,
  kChat,
  kTokenize,
  kDetokenize,
  kNext,
  kCache,
  kSession,    // /v1/sessions/NAME
  kPreflight,  // OPTIONS of any of these: a browser asks what is allowed.
};

// For logs and metrics: "completions" and so on.
std::string_view EndpointName(Endpoint endpoint);

// Whether it may be asked without an API key: the page itself, and whether the server lives.
bool IsPublic(Endpoint endpoint);

// 404 for a path that is none of the server's; 405 for another method; 415 for a POST whose body is
// not declared to be JSON (so that no page of another origin can send one unasked).
ApiResult<Endpoint> FindEndpoint(const HttpRequest& request);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_ENDPOINTS_H_
