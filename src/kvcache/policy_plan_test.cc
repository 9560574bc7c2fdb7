// Plans of policies, beside sequences of a real pool.
#include "kvcache/policy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/plan_workload.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {
namespace {

using testing::HasSubstr;

CacheGeometryOptions Options(std::string_view spec, std::uint64_t block_tokens = 32,
                             std::uint64_t head_dim = 32) {
  const PolicyShape shape = {.layers = 4, .kv_heads = 4, .head_dim = head_dim};
  auto policy = CachePolicy::Parse(spec, shape);
  EXPECT_TRUE(policy.has_value()) << policy.error().message;
  return {.layers = 4,
          .kv_heads = 4,
          .head_dim = head_dim,
          .block_tokens = block_tokens,
          .hidden_dim = 128,
          .policy = policy.value()};
}

CachePlan Planned(const CacheGeometryOptions& options, const PlanWorkload& workload) {
  const auto plan = PlanPolicyCache(options, workload);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan.value() : CachePlan();
}

PlanWorkload One(std::uint64_t tokens) { return {.requests = {{.count = 1, .tokens = tokens}}}; }

constexpr const char* kPolicies[] = {
    "full",
    "dtype=f16",
    "k=int8,v=int4",
    "k=int4,group=32,v=int8",
    "window=20",
    "window=50,sinks=4,dtype=int8",
    "2-3:window=33,sinks=17;0:store=hidden;1.1:store=none",
    "dtype=int8;0-3.0:window=40;1.2:k=int4,group=16;3:store=none",
    "store=none",
};

// One position a step, as decoding goes: what the pool held at most is what was planned.
TEST(PolicyPlanTest, IsWhatARealPoolHoldsOnTheWay) {
  for (const char* spec : kPolicies) {
    for (const std::uint64_t block : {32u, 64u}) {
      for (const std::uint64_t head_dim : {32u, 5u}) {
        const CacheGeometryOptions options = Options(spec, block, head_dim);
        const auto geometry = CacheGeometry::Make(options);
        ASSERT_TRUE(geometry) << geometry.error().message;
        auto pool = BlockPool::Make(geometry.value(), {.budget_bytes = std::uint64_t{1} << 30});
        ASSERT_TRUE(pool) << pool.error().message;
        CachedSequence sequence(*pool.value());
        for (std::uint64_t length = 1; length <= 150; ++length) {
          ASSERT_TRUE(sequence.Reserve(1));
          sequence.Advance(1);
          if (length % 7 != 0 && length % 32 > 1) continue;
          const CachePlan plan = Planned(options, One(length));
          EXPECT_EQ(plan.bytes_total, pool.value()->stats().peak_live_bytes)
              << spec << " " << block << " " << length;
        }
      }
    }
  }
}

TEST(PolicyPlanTest, FullIsTheOldPlan) {
  const PlanWorkload workload = {.requests = {{3, 40}, {2, 100}}, .shared_prefix = 35};
  const CachePlan policy = Planned(Options("full", 16), workload);
  PlanWorkload same = workload;
  same.block_tokens = 16;
  const auto plain = PlanCache({.layers = 4, .kv_heads = 4, .head_dim = 32}, {}, same);
  ASSERT_TRUE(plain);
  EXPECT_EQ(policy.bytes_per_token, plain.value().bytes_per_token);
  EXPECT_EQ(policy.bytes_per_layer, plain.value().bytes_per_layer);
  EXPECT_EQ(policy.block_bytes, plain.value().block_bytes);
  EXPECT_EQ(policy.sequences, plain.value().sequences);
  EXPECT_EQ(policy.tokens, plain.value().tokens);
  EXPECT_EQ(policy.blocks, plain.value().blocks);
  EXPECT_EQ(policy.bytes_total, plain.value().bytes_total);
  EXPECT_EQ(policy.bytes_without_sharing, plain.value().bytes_without_sharing);
  EXPECT_EQ(policy.bytes_read_per_step, plain.value().bytes_read_per_step);
  EXPECT_EQ(policy.formula, "4 layers × 1024 = 4096 bytes");
  const auto fit = FitPolicyCache(Options("full", 16), workload, 10'000'000);
  const auto plain_fit =
      FitCache({.layers = 4, .kv_heads = 4, .head_dim = 32}, {}, same, 10'000'000);
  ASSERT_TRUE(fit && plain_fit);
  EXPECT_EQ(fit.value().times, plain_fit.value().times);
}

TEST(PolicyPlanTest, LayersAddUp) {
  const CachePlan plan =
      Planned(Options("dtype=int8;1:store=hidden;2.0-1:dtype=int4;0:store=none"), One(128));
  // Nothing; 128 × 4; 2 × 68 + 2 × 40; 4 heads × (34 + 34).
  EXPECT_EQ(plan.bytes_per_layer, (std::vector<std::uint64_t>{0, 512, 216, 272}));
  EXPECT_EQ(plan.bytes_per_token, 1000u);
  EXPECT_EQ(plan.formula,
            "1 layer × 0 + 1 layer × 512 + 1 layer × 216 + 1 layer × 272 = 1000 bytes");
  EXPECT_TRUE(plan.runs);
  EXPECT_EQ(plan.bytes_read_per_step, 128u * 1000);
  // Keys by channel: 5 bits a number with G = 32, and the tail beside.
  const CachePlan channels = Planned(Options("k=int4,group=32,v=int8"), One(128));
  EXPECT_EQ(channels.bytes_per_token, 4u * 4 * (20 + 34));
  EXPECT_EQ(channels.bytes_total, 128u * 4 * 4 * 54 + 32 * 4 * 4 * 128);
  // At 100, four keys of the incomplete group are read in f32.
  EXPECT_EQ(Planned(Options("k=int4,group=32,v=int8"), One(100)).bytes_read_per_step,
            96u * 16 * 54 + 4 * 16 * (128 + 34));
}

TEST(PolicyPlanTest, WindowsFitWithoutEnd) {
  const auto fit = FitPolicyCache(Options("window=64,sinks=4"), One(1000), 1'000'000);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit.value().longest, CacheFit::kEndless);
  const CachePlan plan = Planned(Options("window=64,sinks=4"), One(1000));
  EXPECT_EQ(plan.bytes_total, Planned(Options("window=64,sinks=4"), One(100'000)).bytes_total);
  EXPECT_EQ(plan.bytes_read_per_step, 68u * 4096);
  EXPECT_EQ(plan.bytes_empty, plan.bytes_total - 68 * 4096);
}

TEST(PolicyPlanTest, RefusesByName) {
  PlanWorkload shared = One(100);
  shared.shared_prefix = 50;
  EXPECT_THAT(PlanPolicyCache(Options("2:window=9"), shared).error().message,
              HasSubstr("shared_prefix is 50, but a window of 9 frees"));
  EXPECT_THAT(PlanPolicyCache(Options("full"), {}).error().message,
              HasSubstr("there are no requests"));
  EXPECT_THAT(PlanPolicyCache(Options("full", 17), One(9)).error().message,
              HasSubstr("block_tokens"));
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(PlanPolicyCache(Options("full"), {.requests = {{most, 2}}}).error().message,
              HasSubstr("larger than 2^64 bytes: 4 layers × 1024 = 4096 bytes a token"));
  EXPECT_EQ(FitPolicyCache(Options("full"), {.requests = {{most, 2}}}, 5).error().message,
            PlanPolicyCache(Options("full"), {.requests = {{most, 2}}}).error().message);
}

TEST(PolicyPlanTest, AmountsRememberAnOverflow) {
  const Amount most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((Amount(6) * 7 + 1).value(), 43u);
  EXPECT_FALSE((most + 1).value());
  EXPECT_FALSE((most * 2 * 0).value());
  EXPECT_EQ(CeilDiv(9, 4), 3u);
}

}  // namespace
}  // namespace kvasir::kvcache
