#include "server/answer_json.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

AnswerHead Head(bool chat, bool logprobs = false) {
  return {.chat = chat,
          .logprobs = logprobs,
          .top_logprobs = logprobs,
          .id = "id-1",
          .created = 5,
          .model = "m",
          .fingerprint = "f"};
}

std::string Part(const AnswerJson& json, const AnswerChoice& choice, bool first) {
  std::string out;
  json.AppendPart(out, choice, first);
  return out;
}

const engine::Usage kUsage = {.prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1};

TEST(AnswerJson, WholeCompletion) {
  const auto vocabulary = engine::VocabularyOf("ab");
  const AnswerJson json(Head(false), vocabulary);
  const AnswerChoice choice = {0, "ab", {}, "stop"};
  EXPECT_EQ(json.Whole(std::vector{choice}, kUsage),
            R"({"id":"id-1","object":"text_completion","created":5,"model":"m",)"
            R"("system_fingerprint":"f","choices":[{"index":0,"text":"ab","logprobs":null,)"
            R"("finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,)"
            R"("total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}})");
}

TEST(AnswerJson, PartsOfAChat) {
  const auto vocabulary = engine::VocabularyOf("ab");
  const AnswerJson json(Head(true), vocabulary);
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":5,"model":"m",)"
      R"("system_fingerprint":"f","choices":)";
  EXPECT_EQ(Part(json, {1, "", {}, ""}, true),
            head + R"([{"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,)" +
                R"("finish_reason":null}]})" + "\n\n");
  EXPECT_EQ(Part(json, {1, "a\n", {}, ""}, false),
            head + R"([{"index":1,"delta":{"content":"a\n"},"logprobs":null,)" +
                R"("finish_reason":null}]})" + "\n\n");
  EXPECT_EQ(
      Part(json, {1, "", {}, "length"}, false),
      head + R"([{"index":1,"delta":{},"logprobs":null,"finish_reason":"length"}]})" + "\n\n");
}

TEST(AnswerJson, UsageComesLastAndIsNullBefore) {
  const auto vocabulary = engine::VocabularyOf("ab");
  AnswerHead head = Head(false);
  head.include_usage = true;
  const AnswerJson json(head, vocabulary);
  EXPECT_TRUE(Part(json, {0, "a", {}, ""}, true).ends_with(",\"usage\":null}\n\n"));
  EXPECT_TRUE(json.UsagePart(kUsage).ends_with(
      R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
      R"("prompt_tokens_details":{"cached_tokens":1}}})"
      "\n\n"));
}

TEST(AnswerJson, LogprobsOfBothShapes) {
  const auto vocabulary = engine::VocabularyOf("春b");
  const base::TokenId spring = *vocabulary.FindPiece("春");
  const base::TokenId b = *vocabulary.FindPiece("b");
  const AnswerToken token = {{spring, -0.5, 1, {{b, -0.25, 0.75}}}, true, 4};
  const AnswerToken unscored = {{b, 0, 1, {}}, false, 0};
  const AnswerJson text(Head(false, true), vocabulary);
  EXPECT_NE(text.Whole(std::vector{AnswerChoice{0, "x", {unscored, token}, "stop"}}, kUsage)
                .find(R"("logprobs":{"tokens":["b","春"],"token_logprobs":[null,-0.5],)"
                      R"("top_logprobs":[null,{"b":-0.25,"春":-0.5}],"text_offset":[0,4]})"),
            std::string::npos);
  const AnswerJson chat(Head(true, true), vocabulary);
  EXPECT_NE(Part(chat, {0, "春", {token}, ""}, false)
                .find(R"("logprobs":{"content":[{"token":"春","logprob":-0.5,)"
                      R"("bytes":[230,152,165],"top_logprobs":[{"token":"b","logprob":-0.25,)"
                      R"("bytes":[98]}]}],"refusal":null})"),
            std::string::npos);
}

TEST(AnswerJson, TokensThatAreNoTextShowTheirPieces) {
  const auto vocabulary = engine::VocabularyOf("a");
  EXPECT_EQ(ShownToken(vocabulary, *vocabulary.FindPiece("a")), "a");
  EXPECT_EQ(ShownToken(vocabulary, *vocabulary.ByteToken(0xE6)), "<0xE6>");
}

TEST(AnswerJson, FinishReasonsAreOpenAis) {
  EXPECT_EQ(OpenAiFinishReason(engine::FinishReason::kStop), "stop");
  EXPECT_EQ(OpenAiFinishReason(engine::FinishReason::kConstraint), "stop");
  EXPECT_EQ(OpenAiFinishReason(engine::FinishReason::kLength), "length");
  EXPECT_EQ(OpenAiFinishReason(engine::FinishReason::kDeadline), "length");
}

TEST(AnswerJson, CharactersAndEvents) {
  EXPECT_EQ(CountCharacters("a春b"), 3u);
  EXPECT_EQ(CountCharacters("\x98"), 0u);
  EXPECT_EQ(ServerSentEvent("{}"), "data: {}\n\n");
  EXPECT_EQ(kLastEvent, "data: [DONE]\n\n");
}

}  // namespace
}  // namespace kvasir::server
