#include "engine/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "constraints/acrostic.h"
#include "constraints/drawable_tokens.h"
#include "engine/engine_test_models.h"

namespace kvasir::engine {
namespace {

using ::testing::HasSubstr;

// Drives a choice with logits that make a given token the greedy one.
class ChoiceTest : public ::testing::Test {
 protected:
  ChoiceTest() : vocabulary_(VocabularyOf("\nabcdelnpsx<>。，春眠不觉晓山水")) {
    shape_.context = 64;
    shape_.vocab = vocabulary_.size();
    request_.prompt = {*vocabulary_.FindPiece("\n")};
    request_.sampling.temperature = 0;
    drawable_ = constraints::DefaultMask(vocabulary_);
  }

  TokenId Id(std::string_view piece) const { return vocabulary_.FindPiece(piece).value(); }

  std::vector<TokenId> Ids(std::string_view text) const {
    std::vector<TokenId> ids;
    for (const std::string_view c : base::SplitCharacters(text)) ids.push_back(Id(c));
    return ids;
  }

  std::vector<TokenId> Bytes(std::string_view bytes) const {
    std::vector<TokenId> ids;
    for (const char c : bytes) {
      ids.push_back(vocabulary_.ByteToken(static_cast<std::uint8_t>(c)).value());
    }
    return ids;
  }

  // Feeds rows that prefer these tokens in turn, until the choice is finished or they are used up;
  // the text is that of the pieces, joined.
  ChoiceResult Run(const std::vector<TokenId>& wanted) {
    Choice choice(request_, 0, shape_, vocabulary_, drawable_);
    ChoiceResult result;
    std::size_t next = 0;
    while (!choice.finished() && next < wanted.size()) {
      std::vector<float> row(vocabulary_.size(), 0.0f);
      row[wanted[next++]] = 10.0f;
      auto taken = choice.Take(row);
      EXPECT_TRUE(taken) << taken.error().message;
      if (!taken) break;
      EXPECT_EQ(base::FirstInvalidUtf8(taken.value().text), std::nullopt);
      result.text += taken.value().text;
      result.tokens.push_back(std::move(taken.value().token));
    }
    EXPECT_TRUE(choice.finished());
    result.finish = choice.finish().value_or(FinishReason::kLength);
    return result;
  }

  tokenizer::Vocabulary vocabulary_;
  model::ModelShape shape_;
  GenerateRequest request_;
  base::TokenMask drawable_;
};

TEST_F(ChoiceTest, EndsAtMaxTokens) {
  request_.max_tokens = 3;
  const ChoiceResult result = Run(Ids("春眠不觉"));
  EXPECT_EQ(result.text, "春眠不");
  EXPECT_EQ(result.finish, FinishReason::kLength);
  EXPECT_EQ(result.tokens.size(), 3u);
}

TEST_F(ChoiceTest, NoTokensWanted) {
  request_.max_tokens = 0;
  const ChoiceResult result = Run({});
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.finish, FinishReason::kLength);
}

TEST_F(ChoiceTest, LimitDoesNotWrap) {
  request_.max_tokens = std::numeric_limits<std::uint64_t>::max();
  shape_.context = 4;
  EXPECT_EQ(Run(Ids("abcde")).text, "abc");  // 1 + 3 tokens fill the context.
}

// Case C61: what could have begun a stop string is given back when it does not come.
TEST_F(ChoiceTest, HeldTextIsNotLost) {
  request_.max_tokens = 4;
  request_.stops = {"<end>"};
  EXPECT_EQ(Run(Ids("abc<")).text, "abc<");
  request_.max_tokens = 5;
  request_.stops = {"assistant"};
  EXPECT_EQ(Run(Ids("plens")).text, "plens");
  request_.max_tokens = 3;
  request_.stops = {"ab"};
  const ChoiceResult stopped = Run(Ids("aab"));
  EXPECT_EQ(stopped.text, "a");
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  request_.stops = {"aac"};
  EXPECT_EQ(Run(Ids("aab")).text, "aab");
}

TEST_F(ChoiceTest, StopSpansTokensAndIsNotPartOfTheText) {
  request_.stops = {"。春", "山山"};
  const ChoiceResult result = Run(Ids("山水。春眠"));
  EXPECT_EQ(result.text, "山水");
  EXPECT_EQ(result.finish, FinishReason::kStop);
  EXPECT_EQ(result.tokens.size(), 4u);  // Case C67: tokens really generated.
}

// Case C65: the prompt never stops a text.
TEST_F(ChoiceTest, StopInThePromptIsIgnored) {
  request_.prompt = Ids("春眠");
  request_.stops = {"眠"};
  request_.max_tokens = 2;
  EXPECT_EQ(Run(Ids("不觉")).text, "不觉");
}

TEST_F(ChoiceTest, EndTokenEndsTheText) {
  request_.end_tokens = {Id("\n")};
  const ChoiceResult result = Run(Ids("春\n眠"));
  EXPECT_EQ(result.text, "春");
  EXPECT_EQ(result.finish, FinishReason::kStop);
  EXPECT_EQ(result.tokens.size(), 2u);
  EXPECT_EQ(result.tokens[1].id, Id("\n"));
}

// Case C59: an end token in the prompt is a token like any other.
TEST_F(ChoiceTest, EndTokenInThePromptIsIgnored) {
  request_.prompt = Ids("春\n");
  request_.end_tokens = {Id("\n")};
  request_.max_tokens = 1;
  EXPECT_EQ(Run(Ids("眠")).text, "眠");
}

// A control token is not drawn by default; naming it makes it drawable.
TEST_F(ChoiceTest, NeverTrainedEndTokenIsDrawnOnlyIfNamed) {
  const TokenId eos = vocabulary_.eos().value();
  request_.max_tokens = 1;
  request_.end_tokens = {eos};
  EXPECT_EQ(Run({eos}).finish, FinishReason::kLength);
  drawable_.Allow(eos);
  EXPECT_EQ(Run({eos}).finish, FinishReason::kStop);
}

// Case C69: a truncated tail becomes one U+FFFD at the end; invalid bytes come out at once.
TEST_F(ChoiceTest, BytesThatAreNoCharacters) {
  drawable_.SetAll();
  request_.max_tokens = 3;
  EXPECT_EQ(Run(Bytes("\xF0\x9F\x98")).text, "\uFFFD");
  request_.max_tokens = 1;
  EXPECT_EQ(Run(Bytes("\xFF")).text, "\uFFFD");
  request_.max_tokens = 2;
  EXPECT_EQ(Run(Bytes("\xC0\xAF")).text, "\uFFFD\uFFFD");
  request_.max_tokens = 4;
  EXPECT_EQ(Run(Bytes("\xF0\x9F\x90\x89")).text, "🐉");
}

TEST_F(ChoiceTest, ForcedTokensNeedNoDraw) {
  auto matcher = constraints::MakeAcrosticMatcher(vocabulary_, "春眠", 2);
  ASSERT_TRUE(matcher) << matcher.error().message;
  request_.constraint = std::move(matcher.value());
  Choice choice(request_, 0, shape_, vocabulary_, drawable_);
  // The head is decided at once: both its own row and the row after it are wanted together.
  EXPECT_EQ(choice.text().size(), 2u);
  EXPECT_EQ(choice.first_row(), 0u);
  EXPECT_EQ(choice.target(), 2u);
  // Rows that prefer a punctuation mark: it is not allowed in a line.
  const ChoiceResult result = Run(std::vector<TokenId>(6, Id("，")));
  EXPECT_EQ(result.tokens.size(), 6u);
  const auto characters = base::SplitCharacters(result.text);
  ASSERT_EQ(characters.size(), 6u);
  EXPECT_EQ(characters[0], "春");
  EXPECT_EQ(characters[2], "，");
  EXPECT_EQ(characters[3], "眠");
  EXPECT_EQ(characters[5], "。");
  EXPECT_NE(characters[1], "，");
  EXPECT_EQ(result.finish, FinishReason::kConstraint);
}

TEST_F(ChoiceTest, ForcedTokensHaveTheModelsLogProbabilities) {
  auto matcher = constraints::MakeAcrosticMatcher(vocabulary_, "春", 1);
  ASSERT_TRUE(matcher);
  request_.constraint = std::move(matcher.value());
  const ChoiceResult result = Run({Id("春"), Id("山")});
  ASSERT_EQ(result.tokens.size(), 2u);
  const double others = static_cast<double>(vocabulary_.size()) - 1.0;
  EXPECT_NEAR(result.tokens[0].logprob, 10.0 - std::log(std::exp(10.0) + others), 1e-6);
  EXPECT_NEAR(result.tokens[1].logprob, -std::log(std::exp(10.0) + others), 1e-6);
}

TEST_F(ChoiceTest, StopStringEndsAmongForcedTokens) {
  auto matcher = constraints::MakeAcrosticMatcher(vocabulary_, "春眠不", 1);
  ASSERT_TRUE(matcher);
  request_.constraint = std::move(matcher.value());
  request_.stops = {"眠"};
  const ChoiceResult result = Run(Ids("春，眠。不。"));
  EXPECT_EQ(result.text, "春，");
  EXPECT_EQ(result.finish, FinishReason::kStop);
}

TEST_F(ChoiceTest, MaxTokensCutsAConstraint) {
  auto matcher = constraints::MakeAcrosticMatcher(vocabulary_, "春眠", 1);
  ASSERT_TRUE(matcher);
  request_.constraint = std::move(matcher.value());
  request_.max_tokens = 3;
  const ChoiceResult result = Run(Ids("春，眠。"));
  EXPECT_EQ(result.text, "春，眠");
  EXPECT_EQ(result.finish, FinishReason::kLength);
}

// Case C113: inside an unfinished constraint an end token neither ends the text nor is drawn.
TEST_F(ChoiceTest, EndTokenWaitsForTheConstraint) {
  auto matcher = constraints::MakeAcrosticMatcher(vocabulary_, "春", 3);
  ASSERT_TRUE(matcher);
  request_.constraint = std::move(matcher.value());
  request_.end_tokens = {Id("\n"), Id("山")};
  request_.named_end_tokens = true;
  const ChoiceResult result = Run(Ids("春山山\n"));
  EXPECT_EQ(result.text, "春山山。");
  EXPECT_EQ(result.finish, FinishReason::kConstraint);
}

TEST_F(ChoiceTest, AlternativesAreTheModelsOwn) {
  request_.max_tokens = 1;
  request_.top_logprobs = 2;
  request_.sampling.banned = {Id("春")};
  const ChoiceResult result = Run(Ids("春"));
  ASSERT_EQ(result.tokens.size(), 1u);
  EXPECT_NE(result.tokens[0].id, Id("春"));
  ASSERT_EQ(result.tokens[0].top.size(), 2u);
  EXPECT_EQ(result.tokens[0].top[0].id, Id("春"));
  EXPECT_LT(result.tokens[0].logprob, result.tokens[0].top[0].logprob);
}

// Case C11: never token 0 for want of a number.
TEST_F(ChoiceTest, NonFiniteLogitsNameThePosition) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {std::size_t{0}, vocabulary_.size() / 2, vocabulary_.size() - 1}) {
      Choice choice(request_, 0, shape_, vocabulary_, drawable_);
      std::vector<float> row(vocabulary_.size(), 0.0f);
      row[at] = bad;
      const auto taken = choice.Take(row);
      ASSERT_FALSE(taken);
      EXPECT_EQ(taken.error().code, base::ErrorCode::kNumeric);
      EXPECT_THAT(taken.error().message, HasSubstr("after position 0"));
      EXPECT_THAT(taken.error().message, HasSubstr(fmt::format("token {}", at)));
    }
  }
}

TEST_F(ChoiceTest, NothingAllowedIsAnError) {
  for (TokenId id = 0; id < vocabulary_.size(); ++id) request_.sampling.banned.push_back(id);
  Choice choice(request_, 0, shape_, vocabulary_, drawable_);
  const auto taken = choice.Take(std::vector<float>(vocabulary_.size(), 0.0f));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::engine
