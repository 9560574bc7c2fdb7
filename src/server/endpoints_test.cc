#include "server/endpoints.h"

#include <gtest/gtest.h>

#include <string>

#include "server/static_files.h"

namespace kvasir::server {
namespace {

ApiResult<Endpoint> Find(std::string method, std::string target,
                         std::string type = "application/json") {
  HttpRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.content_type = std::move(type);
  return FindEndpoint(request);
}

TEST(Endpoints, EachPath) {
  EXPECT_EQ(Find("GET", "/").value(), Endpoint::kPage);
  EXPECT_EQ(Find("HEAD", "/health").value(), Endpoint::kHealth);
  EXPECT_EQ(Find("GET", "/v1/models?x").value(), Endpoint::kModels);
  EXPECT_EQ(Find("GET", "/v1/models/a/b").value(), Endpoint::kModel);
  EXPECT_EQ(Find("POST", "/v1/completions").value(), Endpoint::kCompletions);
  EXPECT_EQ(Find("POST", "/v1/chat/completions").value(), Endpoint::kChat);
  EXPECT_EQ(Find("POST", "/kvasir/cache").value(), Endpoint::kCache);
  EXPECT_EQ(Find("POST", "/v1/sessions/a").value(), Endpoint::kSession);
  EXPECT_EQ(Find("GET", "/kvasir/cache").value(), Endpoint::kCache);
  EXPECT_EQ(Find("OPTIONS", "/v1/completions").value(), Endpoint::kPreflight);
}

TEST(Endpoints, RefusalsHaveTheRightStatus) {
  for (const char* path :
       {"/v1", "/v1/models/", "/v1/completions/", "//", "/../etc/passwd", "", "/HEALTH"}) {
    EXPECT_EQ(Find("GET", path).error().status, 404) << path;
  }
  EXPECT_EQ(Find("OPTIONS", "*").error().status, 404);
  EXPECT_EQ(Find("GET", "/v1/completions").error().status, 405);
  EXPECT_EQ(Find("POST", "/health").error().status, 405);
  EXPECT_EQ(Find("GET", "/v1/sessions/a").error().status, 405);
  EXPECT_EQ(Find("POST", "/v1/sessions/").error().status, 404);
  EXPECT_EQ(Find("DELETE", "/v1/models").error().status, 405);
  EXPECT_EQ(Find("BREW", "/").error().status, 405);
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                           "application/jsonp", "multipart/form-data"}) {
    EXPECT_EQ(Find("POST", "/v1/completions", type).error().status, 415) << type;
  }
  EXPECT_TRUE(Find("POST", "/v1/completions", "Application/JSON; charset=utf-8"));
}

TEST(Endpoints, OnlyWhatTellsNothingIsPublic) {
  EXPECT_TRUE(IsPublic(Endpoint::kPage) && IsPublic(Endpoint::kHealth) &&
              IsPublic(Endpoint::kReady));
  for (const Endpoint endpoint : {Endpoint::kMetrics, Endpoint::kModels, Endpoint::kModel,
                                  Endpoint::kCompletions, Endpoint::kChat, Endpoint::kTokenize,
                                  Endpoint::kDetokenize, Endpoint::kNext, Endpoint::kCache}) {
    EXPECT_FALSE(IsPublic(endpoint)) << EndpointName(endpoint);
  }
  EXPECT_EQ(EndpointName(Endpoint::kChat), "chat");
  EXPECT_EQ(EndpointName(Endpoint::kPreflight), "preflight");
}

TEST(StaticFiles, AreBuiltIn) {
  const StaticFile* page = FindStaticFile("/");
  ASSERT_NE(page, nullptr);
  EXPECT_TRUE(page->content_type.starts_with("text/html"));
  EXPECT_NE(page->content.find("<html"), std::string_view::npos);
  EXPECT_EQ(FindStaticFile("/index.html"), nullptr);
  for (const StaticFile& file : StaticFiles()) {
    EXPECT_FALSE(file.content.empty()) << file.path;
    EXPECT_FALSE(file.content_type.empty()) << file.path;
  }
}

}  // namespace
}  // namespace kvasir::server
