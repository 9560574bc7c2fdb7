// The search in made-up worlds whose best maps are known.
#include "eval/policy_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kvasir::eval {
namespace {

using kernels::KvType;
using kvcache::CachePolicy;
using kvcache::HeadPolicy;

constexpr HeadPolicy kF16 = {.k = KvType::kF16, .v = KvType::kF16};
constexpr HeadPolicy kInt8 = {.k = KvType::kInt8, .v = KvType::kInt8};
constexpr HeadPolicy kInt4 = {.k = KvType::kInt4, .v = KvType::kInt4};

// 4 layers of 2 heads; a head takes 64, 32, 16 or 8 bytes.
std::uint64_t HeadBytes(const HeadPolicy& head) {
  if (head == kF16) return 32;
  if (head == kInt8) return 16;
  return head == kInt4 ? 8 : 64;
}

// Divergence is the sum of what each head minds of its setting.
PolicyWorld Additive(std::vector<double> minds, int& measured) {
  PolicyWorld world;
  world.bytes = [](const CachePolicy& policy) -> base::Result<std::uint64_t> {
    std::uint64_t bytes = 0;
    for (std::uint64_t layer = 0; layer < policy.layers(); ++layer) {
      for (const HeadPolicy& head : policy.Layer(layer)) bytes += HeadBytes(head);
    }
    return bytes;
  };
  world.measure = [minds, &measured](
                      std::span<const CachePolicy> policies) -> base::Result<std::vector<double>> {
    std::vector<double> losses;
    for (const CachePolicy& policy : policies) {
      double loss = 0;
      for (std::uint64_t i = 0; i < 8; ++i) {
        const HeadPolicy& head = policy.At(i / 2, i % 2);
        loss += minds[i] * (head == kInt4 ? 100 : head == kInt8 ? 1 : head == kF16 ? 0.01 : 0);
      }
      losses.push_back(loss);
      ++measured;
    }
    return losses;
  };
  return world;
}

PolicySearchOptions Options(std::uint64_t budget) {
  return {.layers = 4,
          .kv_heads = 2,
          .settings = {HeadPolicy{}, kF16, kInt8, kInt4},
          .budget_bytes = budget};
}

TEST(PolicySearchTest, GivesBytesToTheLayersThatMind) {
  int measured = 0;
  // Layer 2 minds much, the others little; its heads alike.
  const PolicyWorld world = Additive({1, 1, 1, 1, 50, 50, 1, 1}, measured);
  // Room for int8 everywhere, or more in one place.
  const auto found = SearchPolicy(Options(128), world);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  const PolicyCandidate& best = found.value().candidates[found.value().best];
  EXPECT_LE(best.bytes, 128u);
  EXPECT_EQ(best.policy.Canonical(), "full,dtype=int8");
  // With 160 bytes the layer that minds gets f16, as all others stay.
  const auto more = SearchPolicy(Options(160), world);
  ASSERT_TRUE(more.has_value());
  const PolicyCandidate& mixed = more.value().candidates[more.value().best];
  EXPECT_EQ(mixed.policy.Canonical(), "0-1+3:full,dtype=int8;2:full,dtype=f16");
  EXPECT_EQ(mixed.bytes, 160u);
  EXPECT_DOUBLE_EQ(mixed.kl, 6 + 1);
  EXPECT_EQ(mixed.how, "by layer");
  ASSERT_EQ(more.value().layer_kl.size(), 4u);
  EXPECT_DOUBLE_EQ(more.value().layer_kl[2][3], 2 * 50 * 100);
  EXPECT_DOUBLE_EQ(more.value().layer_kl[0][1], 2 * 0.01);
}

TEST(PolicySearchTest, LooksIntoLayersWhereHeadsDiffer) {
  int measured = 0;
  const PolicyWorld world = Additive({1, 1, 1, 1, 50, 1, 1, 1}, measured);
  const auto found = SearchPolicy(Options(144), world);
  ASSERT_TRUE(found.has_value());
  const PolicyCandidate& best = found.value().candidates[found.value().best];
  EXPECT_EQ(best.how, "by head");
  EXPECT_EQ(best.policy.At(2, 0), kF16);
  EXPECT_EQ(best.policy.At(2, 1), kInt8);
  const int with_heads = measured;
  measured = 0;
  PolicySearchOptions layers_only = Options(144);
  layers_only.most_heads = 7;
  const auto coarse = SearchPolicy(layers_only, world);
  ASSERT_TRUE(coarse.has_value());
  EXPECT_LT(measured, with_heads);
  for (const PolicyCandidate& candidate : coarse.value().candidates) {
    EXPECT_NE(candidate.how, "by head");
  }
}

// Where the parts do not add up, the map chosen by their sum can be worse than one setting for all.
TEST(PolicySearchTest, IsNeverWorseThanOneSettingEverywhere) {
  int measured = 0;
  PolicyWorld world = Additive({1, 1, 1, 1, 50, 50, 1, 1}, measured);
  const auto additive = world.measure;
  world.measure = [additive](std::span<const CachePolicy> policies) {
    auto losses = additive(policies);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const bool mixed = policies[i].At(0, 0) == kInt8 && policies[i].At(2, 0) == kF16;
      if (mixed) losses.value()[i] += 1000;
    }
    return losses;
  };
  const auto found = SearchPolicy(Options(160), world);
  ASSERT_TRUE(found.has_value());
  const PolicyCandidate& best = found.value().candidates[found.value().best];
  EXPECT_EQ(best.how, "everywhere");
  EXPECT_EQ(best.policy.Canonical(), "full,dtype=int8");
}

TEST(PolicySearchTest, AFullBudgetNeedsNoLoss) {
  int measured = 0;
  const auto found = SearchPolicy(Options(512), Additive(std::vector<double>(8, 1), measured));
  ASSERT_TRUE(found.has_value());
  const PolicyCandidate& best = found.value().candidates[found.value().best];
  EXPECT_TRUE(best.policy.IsFull());
  EXPECT_EQ(best.kl, 0);
}

TEST(PolicySearchTest, RefusesABudgetThatNothingFits) {
  int measured = 0;
  const auto refused = SearchPolicy(Options(63), Additive(std::vector<double>(8, 1), measured));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message,
            "a budget of 63 bytes is too small: the smallest of the settings tried takes 64");
}

TEST(PolicySearchTest, PassesOnWhatGoesWrong) {
  int measured = 0;
  PolicyWorld world = Additive(std::vector<double>(8, 1), measured);
  world.measure = [](std::span<const CachePolicy>) -> base::Result<std::vector<double>> {
    return base::MakeError(base::ErrorCode::kNumeric, "not finite");
  };
  const auto failed = SearchPolicy(Options(512), world);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "not finite");
}

}  // namespace
}  // namespace kvasir::eval
