#include "server/completion_answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/engine_test_models.h"

namespace kvasir::server {
namespace {

using engine::FinishReason;

class CompletionAnswerTest : public testing::Test {
 protected:
  void Make(CompletionAnswerOptions options) {
    options.head.id = "i";
    options.head.model = "m";
    if (options.prompt_texts.empty()) options.prompt_texts = {""};
    answer_ = std::make_shared<CompletionAnswer>(std::move(options), vocabulary_);
  }
  base::TokenId Id(std::string_view piece) const { return *vocabulary_.FindPiece(piece); }
  void Token(std::uint32_t choice, std::string_view piece, std::size_t request = 0) {
    answer_->Take(
        {answer_, request, TokenNews{choice, {Id(piece), -0.5, 1, {}}, std::string(piece), {}}});
  }
  void Finish(std::uint32_t choice, FinishReason reason, std::string rest = "",
              std::size_t request = 0) {
    answer_->Take({answer_, request, FinishNews{choice, reason, std::move(rest)}});
  }
  void Done(std::size_t request = 0) {
    answer_->Take({answer_, request, DoneNews{engine::Usage{2, 3, 1}}});
  }
  std::string TakeOutput() {
    std::string out;
    answer_->MoveOutput(out);
    return out;
  }
  // Events sent so far.
  std::size_t Events() {
    const std::string out = TakeOutput();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = out.find("data: ", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  const tokenizer::Vocabulary vocabulary_ = engine::VocabularyOf("ab春");
  std::shared_ptr<CompletionAnswer> answer_;
};

TEST_F(CompletionAnswerTest, ChoicesOfSeveralPromptsAreInOrder) {
  Make({.n = 2, .prompt_texts = {"p", "q"}});
  Token(1, "b", 1);
  Token(0, "a", 0);
  for (std::size_t request : {0, 1}) {
    Finish(0, FinishReason::kStop, "", request);
    Finish(1, FinishReason::kLength, "", request);
    EXPECT_FALSE(answer_->complete());
    Done(request);
  }
  ASSERT_TRUE(answer_->complete());
  const std::string body = answer_->Body().value();
  const std::size_t first = body.find(R"("index":0,"text":"a")");
  const std::size_t last =
      body.find(R"("index":3,"text":"b","logprobs":null,"finish_reason":"length")");
  EXPECT_NE(first, std::string::npos) << body;
  EXPECT_NE(last, std::string::npos) << body;
  EXPECT_LT(first, last);
  EXPECT_NE(body.find(R"("total_tokens":10)"), std::string::npos) << body;
}

TEST_F(CompletionAnswerTest, StreamsEachTokenOnceAndEnds) {
  Make({.head = {.chat = true, .include_usage = true}, .stream = true});
  EXPECT_TRUE(answer_->streams());
  Token(0, "a");
  EXPECT_EQ(answer_->pending_bytes() > 0, true);
  EXPECT_EQ(Events(), 2u);  // The role, then the token.
  Token(0, "b");
  EXPECT_EQ(Events(), 1u);
  Finish(0, FinishReason::kStop);
  Done();
  const std::string end = TakeOutput();
  EXPECT_NE(end.find(R"("finish_reason":"stop")"), std::string::npos);
  EXPECT_NE(end.find(R"("choices":[],"usage":{)"), std::string::npos);
  EXPECT_TRUE(end.ends_with(kLastEvent));
  EXPECT_EQ(answer_->pending_bytes(), 0u);
}

TEST_F(CompletionAnswerTest, TokensWithoutTextSendNothingUnlessTheyAreScored) {
  Make({.stream = true});
  answer_->Take({answer_, 0, TokenNews{0, {Id("a"), -1, 1, {}}, "", {}}});
  EXPECT_EQ(Events(), 0u);
  Make({.head = {.logprobs = true}, .stream = true});
  answer_->Take({answer_, 0, TokenNews{0, {Id("a"), -1, 1, {}}, "", {}}});
  EXPECT_EQ(Events(), 1u);
}

TEST_F(CompletionAnswerTest, EchoBringsThePromptAndItsScores) {
  Make({.head = {.logprobs = true},
        .echo = true,
        .prompt_texts = {"春a"},
        .prompt_ids = {{Id("春"), Id("a")}}});
  answer_->Take({answer_, 0, ScoredNews{{{Id("a"), -0.125, 1, {}}}}});
  Token(0, "b");
  Finish(0, FinishReason::kLength);
  Done();
  const std::string body = answer_->Body().value();
  EXPECT_NE(body.find(R"("text":"春ab")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("tokens":["春","a","b"],"token_logprobs":[null,-0.125,-0.5])"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("text_offset":[0,1,2])"), std::string::npos) << body;
}

TEST_F(CompletionAnswerTest, ScoresThatComeAfterTokensStillBegin) {
  Make({.head = {.logprobs = true},
        .stream = true,
        .echo = true,
        .prompt_texts = {"ab", "a"},
        .prompt_ids = {{Id("a"), Id("b")}, {Id("a")}}});
  Token(0, "b");
  EXPECT_EQ(Events(), 0u);
  answer_->Take({answer_, 0, ScoredNews{{{Id("b"), -0.125, 1, {}}}}});
  const std::string out = TakeOutput();
  EXPECT_LT(out.find("[null,-0.125]"), out.find("[-0.5]")) << out;
  EXPECT_NE(out.find("[-0.5]"), std::string::npos) << out;
  // A prompt of one token has no scores: its end brings everything.
  Token(0, "b", 1);
  Finish(0, FinishReason::kLength, "", 1);
  EXPECT_EQ(Events(), 0u);
  Done(1);
  EXPECT_EQ(Events(), 3u);
}

TEST_F(CompletionAnswerTest, HiddenTokensOnlyScoreThePrompt) {
  Make({.head = {.logprobs = true},
        .echo = true,
        .hide_tokens = true,
        .prompt_texts = {"ab"},
        .prompt_ids = {{Id("a"), Id("b")}}});
  answer_->Take({answer_, 0, ScoredNews{{{Id("b"), -0.125, 1, {}}}}});
  Token(0, "a");
  Finish(0, FinishReason::kStop);
  Done();
  const std::string body = answer_->Body().value();
  EXPECT_NE(body.find(R"("text":"ab")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("completion_tokens":0)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("finish_reason":"length")"), std::string::npos) << body;
}

TEST_F(CompletionAnswerTest, ErrorsEndAStreamCleanlyAndOnce) {
  Make({.stream = true, .prompt_texts = {"", ""}});
  answer_->Take({answer_, 0, DoneNews{base::MakeError(base::ErrorCode::kNumeric, "bad logit")}});
  EXPECT_TRUE(answer_->complete());
  const std::string out = TakeOutput();
  EXPECT_NE(out.find(R"(data: {"error":{"message":"bad logit")"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with(kLastEvent));
  Done(1);
  EXPECT_EQ(TakeOutput(), "");
}

TEST_F(CompletionAnswerTest, WhatAShutdownCutsIsAnError) {
  Make({});
  Finish(0, FinishReason::kCancelled, "rest");
  Done();
  ASSERT_TRUE(answer_->error());
  EXPECT_EQ(answer_->error()->status, 503);
  Make({.stream = true});
  Finish(0, FinishReason::kCancelled);
  EXPECT_FALSE(answer_->complete());  // The event that says so comes with the end.
  Done();
  EXPECT_TRUE(answer_->complete());
  EXPECT_NE(TakeOutput().find("shutting down"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::server
