#include "engine/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

// What a change to a request that is allowed makes of it.
std::string Refusal(const std::function<void(GenerateRequest&)>& change) {
  model::ModelShape shape;
  shape.vocab = 10;
  shape.context = 16;
  GenerateRequest request;
  request.prompt = {1, 2};
  change(request);
  const auto checked = CheckRequest(request, shape);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, base::ErrorCode::kUsage);
  return checked.error().message;
}

TEST(RequestTest, WhatIsAllowed) {
  EXPECT_EQ(Refusal([](GenerateRequest&) {}), "");
  EXPECT_EQ(Refusal([](GenerateRequest& r) { r.prompt.assign(16, 9); }), "");
  EXPECT_EQ(Refusal([](GenerateRequest& r) { r.top_logprobs = 10; }), "");
  EXPECT_EQ(Refusal([](GenerateRequest& r) { r.sampling.top_k = 10; }), "");
  EXPECT_EQ(Refusal([](GenerateRequest& r) { r.max_tokens = 0; }), "");
}

TEST(RequestTest, WhatIsNotNamesTheValue) {
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.prompt.clear(); }), HasSubstr("no tokens"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.prompt.assign(17, 1); }),
              HasSubstr("17 tokens, but the model's context holds only 16"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.prompt = {10}; }), HasSubstr("token id 10"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.end_tokens = {4294967295u}; }),
              HasSubstr("end token 4294967295"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.choices = 0; }), HasSubstr("0 continuations"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.choices = kMaxChoices + 1; }), HasSubstr("65537"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.top_logprobs = 11; }), HasSubstr("11"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.sampling.top_k = 11; }), HasSubstr("top-k 11"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.sampling.top_p = 0; }), HasSubstr("top-p 0"));
  EXPECT_THAT(Refusal([](GenerateRequest& r) { r.stops = {"a", ""}; }), HasSubstr("stop string"));
}

TEST(RequestTest, NamesOfReasons) {
  EXPECT_EQ(FinishReasonName(FinishReason::kStop), "stop");
  EXPECT_EQ(FinishReasonName(FinishReason::kLength), "length");
  EXPECT_EQ(FinishReasonName(FinishReason::kConstraint), "constraint");
  EXPECT_EQ(FinishReasonName(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(FinishReasonName(FinishReason::kDeadline), "deadline");
}

TEST(RequestTest, TheLongestTextEndsWithTheContext) {
  model::ModelShape shape;
  shape.context = 10;
  const auto longest = [&](std::size_t prompt, std::uint64_t max_tokens) {
    return LongestText({.prompt = std::vector<TokenId>(prompt, 1), .max_tokens = max_tokens},
                       shape);
  };
  EXPECT_EQ(longest(4, 3), 7u);
  EXPECT_EQ(longest(4, 6), 10u);
  EXPECT_EQ(longest(4, UINT64_MAX), 10u);
  EXPECT_EQ(longest(10, 5), 10u);
}

}  // namespace
}  // namespace kvasir::engine
