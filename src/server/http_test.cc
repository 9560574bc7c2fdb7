#include "server/http.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server {
namespace {

TEST(Http, PathsEndWhereAQueryBegins) {
  HttpRequest request;
  request.target = "/v1/models?x=1#y";
  EXPECT_EQ(request.path(), "/v1/models");
  request.target = "/";
  EXPECT_EQ(request.path(), "/");
}

TEST(Http, HeadsSayLengthOrChunksAndNoVersion) {
  HttpReply reply;
  reply.body = "{}";
  reply.headers.emplace_back("X-A", "b");
  const std::string head = ReplyHead(reply, {.keep_alive = true});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(head.ends_with("Connection: keep-alive\r\n\r\n"));
  EXPECT_NE(head.find("Content-Length: 2\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-A: b\r\n"), std::string::npos);
  EXPECT_NE(head.find("Content-Type: application/json\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Server:"), std::string::npos);
  EXPECT_EQ(head.find("asir/"), std::string::npos);
  const std::string chunked = ReplyHead(reply, {.keep_alive = false, .chunked = true});
  EXPECT_NE(chunked.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(chunked.find("Content-Length"), std::string::npos);
  EXPECT_TRUE(chunked.ends_with("Connection: close\r\n\r\n"));
  reply.status = 204;
  EXPECT_EQ(ReplyHead(reply, {}).find("\nContent-"), std::string::npos);
}

TEST(Http, Chunks) {
  std::string out;
  AppendChunk(out, "0123456789abcdef");
  EXPECT_EQ(out, "10\r\n0123456789abcdef\r\n");
  AppendChunk(out, "");
  EXPECT_EQ(out, "10\r\n0123456789abcdef\r\n0\r\n\r\n");
}

TEST(Http, ErrorsSayWhenToComeBackAndHowToSignIn) {
  EXPECT_EQ(ErrorReply(ApiError(429, "full")).headers[0].first, "Retry-After");
  EXPECT_EQ(ErrorReply(ApiError(503, "full")).headers[0].first, "Retry-After");
  EXPECT_EQ(ErrorReply(ApiError(401, "key")).headers[0].first, "WWW-Authenticate");
  EXPECT_TRUE(ErrorReply(ApiError(400, "no")).headers.empty());
}

}  // namespace
}  // namespace kvasir::server
