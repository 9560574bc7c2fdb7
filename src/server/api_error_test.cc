#include "server/api_error.h"

#include <gtest/gtest.h>

namespace kvasir::server {
namespace {

using base::ErrorCode;

TEST(ApiError, StatusFollowsTheCode) {
  const auto status = [](ErrorCode code) { return ApiError(base::Error{code, "m", ""}).status; };
  EXPECT_EQ(status(ErrorCode::kUsage), 400);
  EXPECT_EQ(status(ErrorCode::kBadData), 400);
  EXPECT_EQ(status(ErrorCode::kExhausted), 429);
  EXPECT_EQ(status(ErrorCode::kCancelled), 503);
  EXPECT_EQ(status(ErrorCode::kIo), 500);
  EXPECT_EQ(status(ErrorCode::kNumeric), 500);
}

TEST(ApiError, NeverTellsWhatAFileIsCalled) {
  const ApiError error(base::Error{ErrorCode::kIo, "cannot read '/secret/model.gguf'", ""});
  EXPECT_EQ(ErrorJson(error).find("secret"), std::string::npos);
}

TEST(ApiError, HasTheShapeThatClientsRead) {
  EXPECT_EQ(ErrorJson(ApiError(400, "no", "n", "invalid_value")),
            R"({"error":{"message":"no","type":"invalid_request_error","param":"n",)"
            R"("code":"invalid_value"}})");
  EXPECT_EQ(ErrorJson(ApiError(base::Error{ErrorCode::kExhausted, "full", ""})),
            R"({"error":{"message":"full","type":"rate_limit_error","param":null,)"
            R"("code":"overloaded"}})");
  EXPECT_NE(ErrorJson(ApiError(401, "key")).find("authentication_error"), std::string::npos);
  EXPECT_NE(ErrorJson(ApiError(503, "gone")).find("server_error"), std::string::npos);
}

TEST(ApiError, EveryStatusSentHasAText) {
  for (const int status :
       {200, 204, 400, 401, 403, 404, 405, 408, 413, 415, 417, 429, 431, 500, 503}) {
    EXPECT_NE(StatusText(status), "Error") << status;
  }
}

}  // namespace
}  // namespace kvasir::server
