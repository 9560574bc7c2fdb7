#include "eval/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kvasir::eval {
namespace {

TokenDistribution Of(const std::vector<float>& logits) {
  TokenDistribution row;
  row.Set(logits);
  return row;
}

// Σ p ln(p / q) as it is written, in extended precision.
double ByDefinition(const std::vector<float>& a, const std::vector<float>& b) {
  const auto log_sum = [](const std::vector<float>& x) {
    long double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<long double>(value));
    return std::log(sum);
  };
  const long double log_a = log_sum(a), log_b = log_sum(b);
  long double divergence = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double log_p = a[i] - log_a, log_q = b[i] - log_b;
    divergence += std::exp(log_p) * (log_p - log_q);
  }
  return static_cast<double>(divergence);
}

TEST(DivergenceTest, AgreesWithTheDefinitionFromTinyToLarge) {
  constexpr std::uint32_t kSeed = 3;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  for (const float spread : {1e-5F, 1e-4F, 1e-2F, 0.1F, 0.5F, 2.0F, 8.0F}) {
    for (const std::size_t size : {2u, 17u, 1000u}) {
      std::vector<float> a(size), b(size);
      for (std::size_t i = 0; i < size; ++i) {
        a[i] = 5 * normal(random);
        b[i] = a[i] + spread * normal(random) + 3;  // A shift changes no probability.
      }
      const double expected = ByDefinition(a, b);
      // Extended precision cancels to about 1e-18.
      EXPECT_NEAR(Of(a).Divergence(Of(b)), expected, 1e-4 * expected + 1e-17)
          << spread << " " << size;
      EXPECT_GE(Of(a).Divergence(Of(b)), 0);
    }
  }
}

TEST(DivergenceTest, EqualRowsHaveNoneAndBothDirectionsDiffer) {
  const std::vector<float> row = {1, -2, 3.5F, -100};
  EXPECT_EQ(Of(row).Divergence(Of(row)), 0);
  const std::vector<float> even = {0, 0}, odd = {2, 0};
  EXPECT_NE(Of(even).Divergence(Of(odd)), Of(odd).Divergence(Of(even)));
}

TEST(DivergenceTest, NumbersBeyondTheExponentialStayFinite) {
  // p is 0 in f32 where q is almost 1, and the other way round.
  const std::vector<float> a = {0, 300}, b = {300, 0};
  EXPECT_NEAR(Of(a).Divergence(Of(b)), 300, 1e-3);
  const std::vector<float> huge = {3e38F, -3e38F};
  EXPECT_TRUE(std::isfinite(Of(huge).Divergence(Of(huge))));
}

TEST(DivergenceTest, OfEqualTokensTheFirstIsTop) {
  EXPECT_EQ(Of({1, 4, 4, 2}).top(), 1u);
  EXPECT_EQ(Of({7}).top(), 0u);
}

TEST(DivergenceTest, MeansPercentileAndAgreement) {
  std::vector<TokenEvidence> tokens(200);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[(i * 37) % 200] = {.nll = 2, .divergence = double(i), .same_top = i % 4 != 0};
  }
  const TextEvidence text = SumUp(tokens);
  EXPECT_EQ(text.tokens, 200u);
  EXPECT_DOUBLE_EQ(text.nll, 2);
  EXPECT_NEAR(text.perplexity, std::exp(2.0), 1e-13);
  EXPECT_DOUBLE_EQ(text.kl_mean, 99.5);
  EXPECT_EQ(text.kl_p99, 197);  // 198 of 200 values are at most this.
  EXPECT_DOUBLE_EQ(text.top1, 0.75);
  EXPECT_EQ(SumUp(std::vector<TokenEvidence>{{.divergence = 5}}).kl_p99, 5);
  tokens.resize(101);
  for (std::size_t i = 0; i < 101; ++i) tokens[i].divergence = double(i);
  EXPECT_EQ(SumUp(tokens).kl_p99, 99);  // 100 of 101 is the first share of at least 99 %.
}

}  // namespace
}  // namespace kvasir::eval
