#include "eval/policy_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "eval/eval_test_models.h"
#include "eval/perplexity.h"
#include "eval/random_stream.h"

namespace kvasir::eval {
namespace {

using base::TokenId;
using kvcache::CachePolicy;

constexpr std::size_t kVocab = 65;
constexpr std::size_t kContext = 40;  // Of TinyGpt2.

std::vector<TokenId> SomeTokens(std::size_t count) {
  RandomStream random(5);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(kVocab));
  return tokens;
}

CachePolicy Parsed(std::string_view spec, const model::Model& model) {
  auto policy = CachePolicy::Parse(spec, model.shape().Policy());
  EXPECT_TRUE(policy) << policy.error().message;
  return policy.value();
}

TEST(PolicyEvidenceTest, ExactPoliciesHaveThePerplexityOfEvalAndNoDivergence) {
  const auto model = TinyGpt2(kVocab);
  const auto tokens = SomeTokens(100);
  base::ThreadTeam team(2);
  const CachePolicy policies[] = {Parsed("full", *model), Parsed("store=hidden", *model),
                                  Parsed("1.0:store=none", *model)};
  const auto evidence = EvaluatePolicies(*model, tokens, policies, {}, team);
  ASSERT_TRUE(evidence) << evidence.error().message;
  const auto losses = TokenLosses(*model, tokens, {}, team);
  double sum = 0;
  for (const double loss : losses.value()) sum += loss;
  EXPECT_EQ(evidence.value().full.nll, sum / 99);
  EXPECT_EQ(evidence.value().full.tokens, 99u);
  for (const TextEvidence& exact : evidence.value().policies) {
    EXPECT_EQ(exact.nll, evidence.value().full.nll);
    EXPECT_EQ(exact.kl_mean, 0);
    EXPECT_EQ(exact.kl_p99, 0);
    EXPECT_EQ(exact.top1, 1);
  }
}

// Σ p ln(p / q) of every row, window by window, as it is written.
TEST(PolicyEvidenceTest, DivergenceIsThatOfWholeRowsOfLogits) {
  const auto model = TinyGpt2(kVocab);
  const auto tokens = SomeTokens(100);
  base::ThreadTeam team(1);
  const CachePolicy policy = Parsed("window=5;1:k=int4,v=int8", *model);
  const auto evidence = EvaluatePolicies(*model, tokens, {&policy, 1}, {}, team);
  ASSERT_TRUE(evidence);
  double sum = 0;
  std::size_t rows = 0, same = 0;
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += kContext) {
    const auto inputs =
        std::span(tokens).subspan(begin, std::min(kContext, tokens.size() - 1 - begin));
    const auto full = SequenceLogits(*model, inputs, {}, team);
    const auto other = SequenceLogits(*model, inputs, {.policy = policy}, team);
    for (std::size_t row = 0; row < inputs.size(); ++row, ++rows) {
      const auto a = std::span(full.value()).subspan(row * kVocab, kVocab);
      const auto b = std::span(other.value()).subspan(row * kVocab, kVocab);
      double sum_a = 0, sum_b = 0;
      for (const float x : a) sum_a += std::exp(double(x));
      for (const float x : b) sum_b += std::exp(double(x));
      for (std::size_t i = 0; i < kVocab; ++i) {
        const double p = std::exp(double(a[i])) / sum_a;
        sum += p * std::log(p / (std::exp(double(b[i])) / sum_b));
      }
      same += std::max_element(a.begin(), a.end()) - a.begin() ==
              std::max_element(b.begin(), b.end()) - b.begin();
    }
  }
  const TextEvidence& measured = evidence.value().policies[0];
  EXPECT_EQ(rows, 99u);
  EXPECT_NEAR(measured.kl_mean, sum / 99, 1e-4 * sum / 99);
  EXPECT_GT(measured.kl_mean, 1e-6);
  EXPECT_GE(measured.kl_p99, measured.kl_mean);
  EXPECT_DOUBLE_EQ(measured.top1, double(same) / 99);
}

TEST(PolicyEvidenceTest, ArrangementChangesNoBit) {
  const auto model = TinyGpt2(kVocab);
  const auto tokens = SomeTokens(130);
  const CachePolicy policies[] = {Parsed("dtype=int4", *model),
                                  Parsed("window=9,sinks=2,dtype=f16", *model)};
  base::ThreadTeam one(1), three(3);
  const auto plain = EvaluatePolicies(*model, tokens, policies, {}, one);
  ASSERT_TRUE(plain);
  for (const bool cached : {true, false}) {
    for (const std::uint64_t chunk : {1u, 7u}) {
      const auto other =
          EvaluatePolicies(*model, tokens, policies,
                           {.block_tokens = 32, .prefill_chunk = chunk, .kv_cache = cached}, three);
      ASSERT_TRUE(other);
      for (std::size_t i = 0; i < 2; ++i) {
        const TextEvidence& a = plain.value().policies[i];
        const TextEvidence& b = other.value().policies[i];
        EXPECT_EQ(a.nll, b.nll) << chunk << cached;
        EXPECT_EQ(a.kl_mean, b.kl_mean);
        EXPECT_EQ(a.kl_p99, b.kl_p99);
        EXPECT_EQ(a.top1, b.top1);
      }
    }
  }
}

TEST(PolicyEvidenceTest, PassesOnWhatIsWrong) {
  const auto inner = TinyGpt2(kVocab);
  base::ThreadTeam team(1);
  EXPECT_EQ(EvaluatePolicies(*inner, SomeTokens(1), {}, {}, team).error().message,
            "the text has 1 token; at least 2 are needed, one to predict the other from");
  EXPECT_EQ(EvaluatePolicies(*inner, SomeTokens(9), {}, {.block_tokens = 17}, team).error().code,
            base::ErrorCode::kUsage);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    step.logits[3 * kVocab + 1] = std::numeric_limits<float>::quiet_NaN();
  });
  const auto refused = EvaluatePolicies(model, SomeTokens(9), {}, {}, team);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("token 1 at position 3"));
}

}  // namespace
}  // namespace kvasir::eval
