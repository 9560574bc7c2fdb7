#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "eval/eval_test_models.h"
#include "eval/random_stream.h"
#include "kernels/softmax.h"

namespace kvasir::eval {
namespace {

using base::TokenId;

constexpr std::size_t kContext = 40;

std::vector<TokenId> RandomTokens(std::size_t count, std::uint64_t vocab, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(vocab));
  return tokens;
}

// By the definition: for each token the first window that reaches it, computed alone.
std::vector<double> LossesByDefinition(const model::Model& model, std::span<const TokenId> tokens,
                                       std::size_t stride) {
  base::ThreadTeam team(1);
  std::vector<double> losses;
  for (std::size_t predicted = 1; predicted < tokens.size(); ++predicted) {
    std::size_t start = 0;
    while (start + model.shape().context < predicted) start += stride;
    const auto inputs = tokens.subspan(start, predicted - start);
    const auto logits = SequenceLogits(model, inputs, {}, team);
    EXPECT_TRUE(logits);
    const std::size_t vocab = model.shape().vocab;
    losses.push_back(kernels::CrossEntropy(logits.value().data() + (inputs.size() - 1) * vocab,
                                           vocab, tokens[predicted]));
  }
  return losses;
}

TEST(PerplexityTest, EveryTokenButTheFirstOnceFromTheStartOfItsWindow) {
  const auto model = TinyGpt2(270, kContext);
  base::ThreadTeam team(1);
  for (const std::size_t count : {2u, 3u, 40u, 41u, 42u, 81u, 82u, 130u}) {
    const auto tokens = RandomTokens(count, 270, count);
    const auto losses = TokenLosses(*model, tokens, {}, team);
    ASSERT_TRUE(losses);
    EXPECT_EQ(losses.value(), LossesByDefinition(*model, tokens, kContext)) << count;
  }
}

TEST(PerplexityTest, StridesOverlapWindowsButCountATokenOnce) {
  const auto model = TinyGpt2(270, kContext);
  base::ThreadTeam team(2);
  const auto tokens = RandomTokens(100, 270, 1);
  for (const std::uint64_t stride : {1u, 7u, 20u, 39u, 40u}) {
    const auto losses = TokenLosses(*model, tokens, {.stride = stride, .arrangement = {}}, team);
    ASSERT_TRUE(losses);
    EXPECT_EQ(losses.value(), LossesByDefinition(*model, tokens, stride)) << stride;
  }
}

TEST(PerplexityTest, ArrangementChangesNoBit) {
  const auto model = TinyGpt2(270, kContext);
  base::ThreadTeam one(1);
  const auto tokens = RandomTokens(333, 270, 2);
  const auto expected = TokenLosses(*model, tokens, {}, one);
  ASSERT_TRUE(expected);
  for (const std::size_t threads : {1u, 3u}) {
    base::ThreadTeam team(threads);
    for (const ArrangementOptions& arrangement :
         {ArrangementOptions{.block_tokens = 32}, ArrangementOptions{.prefill_chunk = 1},
          ArrangementOptions{.prefill_chunk = 13}, ArrangementOptions{.prefill_chunk = 100000},
          ArrangementOptions{.prefill_chunk = 9, .kv_cache = false}}) {
      const auto losses = TokenLosses(*model, tokens, {.arrangement = arrangement}, team);
      ASSERT_TRUE(losses);
      EXPECT_EQ(losses.value(), expected.value());
    }
  }
}

TEST(PerplexityTest, EqualLogitsGiveTheVocabularySizeAsPerplexity) {
  const std::string text = "春风又绿江南岸，明月何时照我还。";
  const auto tokenizer = TokenizerOf(text);
  const std::uint64_t vocab = tokenizer->vocabulary().size();
  const auto inner = TinyGpt2(vocab);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    std::fill(step.logits.begin(), step.logits.end(), 1.5f);
  });
  base::ThreadTeam team(1);
  const auto result = EvaluateText(model, *tokenizer, text, {}, team);
  ASSERT_TRUE(result);
  const double size = static_cast<double>(vocab);
  EXPECT_EQ(result.value().tokens, 15u);
  EXPECT_EQ(result.value().characters, 15u);
  EXPECT_NEAR(result.value().nll, std::log(size), 1e-6);
  EXPECT_NEAR(result.value().perplexity, size, size * 1e-6);
  EXPECT_NEAR(result.value().bits_per_char, std::log2(size), 1e-5);
}

TEST(PerplexityTest, SumsRunOverTokensAscending) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  const auto tokenizer = TokenizerOf(text);
  const auto model = TinyGpt2(tokenizer->vocabulary().size());
  base::ThreadTeam team(2);
  const auto result = EvaluateText(*model, *tokenizer, text, {}, team);
  ASSERT_TRUE(result);
  ASSERT_EQ(result.value().token_nll.size(), text.size() - 1);
  double sum = 0;
  for (const double nll : result.value().token_nll) sum += nll;
  EXPECT_EQ(result.value().nll, sum / static_cast<double>(text.size() - 1));
}

TEST(PerplexityTest, CharactersOfByteTokensCountOnce) {
  // The dragon is 4 byte tokens: it is predicted but for its first byte.
  const auto tokenizer = TokenizerOf("ab");
  const auto model = TinyGpt2(tokenizer->vocabulary().size());
  base::ThreadTeam team(1);
  const auto dragon = EvaluateText(*model, *tokenizer, "🐉", {}, team);
  ASSERT_TRUE(dragon);
  EXPECT_EQ(dragon.value().tokens, 3u);
  EXPECT_EQ(dragon.value().characters, 1u);
  const auto mixed = EvaluateText(*model, *tokenizer, "a🐉b", {}, team);
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed.value().tokens, 5u);
  EXPECT_EQ(mixed.value().characters, 2u);
}

TEST(PerplexityTest, RefusesTextsThatCannotBeScored) {
  const auto tokenizer = TokenizerOf("ab");
  const auto model = TinyGpt2(tokenizer->vocabulary().size());
  base::ThreadTeam team(1);
  const auto empty = EvaluateText(*model, *tokenizer, "", {}, team);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, base::ErrorCode::kBadData);
  EXPECT_EQ(empty.error().message,
            "the text has 0 tokens; at least 2 are needed, one to predict the other from");
  const auto short_text = EvaluateText(*model, *tokenizer, "a", {}, team);
  ASSERT_FALSE(short_text);
  EXPECT_NE(short_text.error().message.find("1 token;"), std::string::npos);
  const auto broken = EvaluateText(*model, *tokenizer, "abab\xFFz", {}, team);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, base::ErrorCode::kBadData);
  EXPECT_NE(broken.error().message.find("4"), std::string::npos) << broken.error().message;
}

TEST(PerplexityTest, RefusesStridesBeyondTheContext) {
  const auto model = TinyGpt2(270, kContext);
  base::ThreadTeam team(1);
  const auto tokens = RandomTokens(10, 270, 3);
  const auto refused = TokenLosses(*model, tokens, {.stride = 41, .arrangement = {}}, team);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message, "stride 41 is not allowed: 1 to 40, the model's context");
}

TEST(PerplexityTest, NonFiniteLogitsNameTheirPositionInTheText) {  // Case C11
  const auto inner = TinyGpt2(270, kContext);
  constexpr std::size_t kBadAt = 57;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const auto tokens = RandomTokens(100, 270, 4);
    const MeddledModel model(*inner, [&](const MeddledModel::Step& step) {
      std::size_t row = 0;
      for (const model::BatchItem& item : step.items) {
        for (std::size_t i = item.tokens.size() - item.logit_rows; i < item.tokens.size(); ++i) {
          if (&item.tokens[i] == &tokens[kBadAt]) step.logits[row * 270 + 12] = bad;
          ++row;
        }
      }
    });
    base::ThreadTeam team(1);
    const auto result = TokenLosses(model, tokens, {}, team);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, base::ErrorCode::kNumeric);
    EXPECT_NE(result.error().message.find("token 12 at position 57 is"), std::string::npos)
        << result.error().message;
  }
}

}  // namespace
}  // namespace kvasir::eval
