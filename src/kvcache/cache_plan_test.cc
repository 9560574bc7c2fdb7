#include "kvcache/cache_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {
namespace {

using testing::HasSubstr;

constexpr PlanShape kLesson = {.layers = 4, .kv_heads = 4, .head_dim = 32, .embedding = 128};
constexpr std::uint64_t kMost = ~std::uint64_t{0};

CachePlan Planned(const PlanShape& shape, const PlanPolicy& policy, const PlanWorkload& workload) {
  const auto plan = PlanCache(shape, policy, workload);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan.value() : CachePlan();
}

std::string Refusal(const PlanShape& shape, const PlanPolicy& policy,
                    const PlanWorkload& workload) {
  const auto plan = PlanCache(shape, policy, workload);
  EXPECT_FALSE(plan);
  if (plan) return "";
  EXPECT_EQ(plan.error().code, base::ErrorCode::kUsage);
  const auto fit = FitCache(shape, policy, workload, 1);
  EXPECT_EQ(fit.error().message, plan.error().message);
  return plan.error().message;
}

PlanWorkload One(std::uint64_t tokens, std::uint64_t block_tokens = 16) {
  return {.requests = {{.count = 1, .tokens = tokens}}, .block_tokens = block_tokens};
}

// Keys of a group that is not complete are read in full precision: 1,023 of 1,024 are the dearest.
TEST(CachePlanTest, AnIncompleteGroupOfKeysIsReadAsItIsHeld) {
  const PlanPolicy policy = {.dtype = PlanDType::kInt4, .key_group = 1024};
  const PlanShape gpt2 = {.layers = 12, .kv_heads = 12, .head_dim = 64};
  const CachePlan tail = Planned(gpt2, policy, One(1023));
  const std::uint64_t values = 12 * 12 * (64 / 2 + 4);  // A token's, with scale and minimum.
  EXPECT_EQ(tail.bytes_read_per_step, 1023 * (values + 12u * 768 * 4));
  const CachePlan whole = Planned(gpt2, policy, One(1024));
  EXPECT_EQ(whole.bytes_read_per_step, 1024 * values + 12u * 768 * (512 + 4));
}

TEST(CachePlanTest, TheLessonsModelTakesFourKibibytesAToken) {
  const CachePlan plan = Planned(kLesson, {}, One(128));
  EXPECT_TRUE(plan.runs);
  EXPECT_EQ(plan.bytes_per_token, 4096u);
  EXPECT_EQ(plan.bytes_per_layer, std::vector<std::uint64_t>(4, 1024));
  EXPECT_EQ(plan.block_bytes, 65536u);
  EXPECT_EQ(plan.blocks, 8u);
  EXPECT_EQ(plan.bytes_total, 524288u);
  EXPECT_EQ(plan.bytes_empty, 0u);
  EXPECT_EQ(plan.bytes_read_per_step, 524288u);
  EXPECT_EQ(plan.formula, "2 (K and V) × 4 layers × 4 kv heads × 32 × 4 bytes = 4096 bytes");
}

TEST(CachePlanTest, EachTypeHasItsBytes) {
  const struct {
    PlanDType dtype;
    std::uint64_t bytes;  // Of 32 numbers.
  } rows[] = {{PlanDType::kF32, 128},
              {PlanDType::kF16, 64},
              {PlanDType::kBF16, 64},
              {PlanDType::kInt8, 34},   // 8.5 bits a value
              {PlanDType::kInt4, 20}};  // 5 bits a value
  for (const auto& [dtype, bytes] : rows) {
    const CachePlan plan = Planned(kLesson, {.dtype = dtype}, One(1));
    EXPECT_EQ(plan.bytes_per_token, 2 * 4 * 4 * bytes) << PlanDTypeName(dtype);
    EXPECT_TRUE(plan.runs);
    EXPECT_EQ(FindPlanDType(PlanDTypeName(dtype)), dtype);
    EXPECT_THAT(plan.formula, HasSubstr(fmt::format("= {} bytes", plan.bytes_per_token)));
  }
  // An odd width has half a byte left over.
  const PlanShape odd = {.layers = 1, .kv_heads = 3, .head_dim = 5};
  EXPECT_EQ(Planned(odd, {.dtype = PlanDType::kInt4}, One(1)).bytes_per_token, 2u * 3 * (3 + 4));
  EXPECT_EQ(FindPlanDType("int3"), std::nullopt);
}

TEST(CachePlanTest, LatentsAreOneRowForAllHeads) {
  const PlanShape latent = {.layers = 61, .latent_dim = 512, .rope_dim = 64};
  EXPECT_EQ(Planned(latent, {.dtype = PlanDType::kF16}, One(1)).formula,
            "61 layers × (512 + 64) × 2 bytes = 70272 bytes");
  EXPECT_EQ(Planned(latent, {.dtype = PlanDType::kInt8}, One(1)).bytes_per_token, 61u * 578);
  EXPECT_EQ(Planned(latent, {.dtype = PlanDType::kInt4}, One(1)).bytes_per_token, 61u * 292);
  EXPECT_TRUE(Planned(latent, {}, One(1)).runs);
}

TEST(CachePlanTest, HiddenStatesAreHalfOfKeysAndValuesOfEveryHead) {
  const CachePlan plan = Planned(kLesson, {.hidden = true}, One(100));
  EXPECT_EQ(plan.bytes_per_token, 2048u);
  EXPECT_EQ(plan.bytes_total, 7u * 16 * 2048);
  EXPECT_TRUE(plan.runs);
  EXPECT_THAT(plan.formula, HasSubstr("the layer's input"));
}

TEST(CachePlanTest, KeysAndValuesMayDiffer) {
  const PlanPolicy policy = {.dtype = PlanDType::kInt8, .value_dtype = PlanDType::kF16};
  const CachePlan plan = Planned(kLesson, policy, One(16));
  EXPECT_EQ(plan.bytes_per_token, 4u * 4 * ((32 + 2) + 2 * 32));
  EXPECT_EQ(plan.bytes_total, 16 * plan.bytes_per_token);
  EXPECT_TRUE(plan.runs);
  EXPECT_THAT(plan.formula, HasSubstr("(32 bytes + 2 of scale) of K + "));
  EXPECT_THAT(plan.formula, HasSubstr("32 × 2 bytes of V"));
  // One type, said twice, is that type.
  EXPECT_EQ(Planned(kLesson, {.value_dtype = PlanDType::kF32}, One(16)).bytes_total, 16u * 4096);
  const PlanPolicy grouped = {
      .dtype = PlanDType::kInt4, .value_dtype = PlanDType::kInt8, .key_group = 32};
  EXPECT_EQ(Planned(kLesson, grouped, One(16)).block_bytes, 4u * 16 * 4 * (32 + 2));
  EXPECT_THAT(Refusal(kLesson, {.value_dtype = PlanDType::kF16, .hidden = true}, One(1)),
              HasSubstr("value_dtype is f16, but this cache holds no V"));
  EXPECT_THAT(Refusal({.layers = 1, .latent_dim = 8, .rope_dim = 2},
                      {.value_dtype = PlanDType::kF16}, One(1)),
              HasSubstr("holds no V of its own"));
}

// K of complete groups at 4 + 32/G bits, a tail in f32; V by token.
TEST(CachePlanTest, OnlyWhatTheRunningCacheHoldsToTheByteRuns) {
  EXPECT_TRUE(Planned(kLesson, {.window = 64, .sinks = 4}, One(1000)).runs);
  EXPECT_FALSE(Planned(kLesson, {.window = 64, .sinks = 65}, One(1000)).runs);
  const PlanPolicy grouped = {.dtype = PlanDType::kInt4, .key_group = 32};
  EXPECT_TRUE(Planned(kLesson, grouped, One(128, 32)).runs);
  EXPECT_FALSE(Planned(kLesson, {.dtype = PlanDType::kInt4, .key_group = 1024}, One(128)).runs);
  // Latents are always f32; parts of blocks begin at multiples of 64 bytes, which the formula has
  // not.
  const PlanShape latent = {.layers = 2, .latent_dim = 16, .rope_dim = 8};
  EXPECT_FALSE(Planned(latent, {.dtype = PlanDType::kF16}, One(1)).runs);
  const PlanShape odd = {.layers = 1, .kv_heads = 3, .head_dim = 5};
  EXPECT_FALSE(Planned(odd, {.dtype = PlanDType::kInt8}, One(1)).runs);
  EXPECT_TRUE(Planned(odd, {}, One(1)).runs);
  EXPECT_FALSE(Planned({.layers = kMaxLayers + 1, .kv_heads = 1, .head_dim = 1}, {}, One(1)).runs);
}

TEST(CachePlanTest, KeysByChannelHaveATail) {
  const PlanPolicy policy = {.dtype = PlanDType::kInt4, .key_group = 32};
  const std::uint64_t channels = 4 * 32;
  const std::uint64_t value_row = 4 * (16 + 4);
  for (const std::uint64_t tokens : {1u, 31u, 32u, 33u, 100u, 128u}) {
    const CachePlan plan = Planned(kLesson, policy, One(tokens));
    EXPECT_EQ(plan.bytes_per_token, 4 * (value_row + channels * 5 / 8));
    const std::uint64_t blocks = (tokens + 15) / 16;
    EXPECT_EQ(plan.bytes_total,
              4 * (blocks * 16 * value_row + tokens / 32 * channels * (16 + 4) + channels * 32 * 4))
        << tokens;
    EXPECT_EQ(plan.block_bytes, 4 * 16 * value_row);
  }
  // Complete groups of a prefix are held once, as its blocks are; tails are each sequence's own.
  const PlanWorkload shared = {.requests = {{.count = 3, .tokens = 100}}, .shared_prefix = 70};
  EXPECT_EQ(Planned(kLesson, policy, shared).bytes_total,
            4 * ((4 + 3 * 3) * 16 * value_row + (2 + 3) * channels * 20 + 3 * channels * 128));
  EXPECT_THAT(Planned(kLesson, policy, One(1)).formula, HasSubstr("(4 + 32 ÷ 32) ÷ 8 bytes of K"));
}

// Blocks that hold a visible position, from the definition: a query at t sees 0 … S − 1 and
// t − W + 1 … t.
std::uint64_t MostBlocksOnTheWay(std::uint64_t tokens, const PlanPolicy& policy,
                                 std::uint64_t block_tokens) {
  std::uint64_t most = 0;
  for (std::uint64_t t = 0; t < tokens; ++t) {
    std::set<std::uint64_t> blocks;
    for (std::uint64_t j = 0; j <= t; ++j) {
      if (j < policy.sinks || j + policy.window > t) blocks.insert(j / block_tokens);
    }
    most = std::max<std::uint64_t>(most, blocks.size());
  }
  return most;
}

TEST(CachePlanTest, AWindowHoldsTheBlocksOfWhatIsVisible) {
  for (const std::uint64_t block_tokens : {16u, 48u}) {
    for (const std::uint64_t window : {1u, 2u, 15u, 16u, 17u, 18u, 49u, 64u, 200u}) {
      for (const std::uint64_t sinks : {0u, 1u, 4u, 16u, 17u}) {
        const PlanPolicy policy = {.window = window, .sinks = sinks};
        for (const std::uint64_t tokens : {1u, 16u, 17u, 63u, 64u, 65u, 130u, 177u}) {
          const CachePlan plan = Planned(kLesson, policy, One(tokens, block_tokens));
          EXPECT_EQ(plan.blocks, MostBlocksOnTheWay(tokens, policy, block_tokens))
              << "window " << window << " sinks " << sinks << " tokens " << tokens << " blocks of "
              << block_tokens;
          EXPECT_EQ(plan.bytes_total, plan.blocks * plan.block_bytes);
          EXPECT_EQ(plan.bytes_read_per_step, std::min(tokens, window + sinks) * 4096);
          EXPECT_LE(plan.bytes_empty, plan.bytes_total - plan.bytes_read_per_step);
        }
      }
    }
  }
}

// The plan against sequences of a real pool: shapes with and without grouped heads and latents,
// every block size, forks that share a prefix.
TEST(CachePlanTest, AgreesToTheByteWithTheRunningCache) {
  const PlanShape shapes[] = {kLesson,
                              {.layers = 2, .kv_heads = 2, .head_dim = 16},
                              {.layers = 3, .kv_heads = 1, .head_dim = 20},
                              {.layers = 2, .latent_dim = 24, .rope_dim = 8}};
  for (const PlanShape& shape : shapes) {
    for (std::uint64_t block_tokens = 16; block_tokens <= 256; block_tokens += 16) {
      const auto geometry = CacheGeometry::Make({.layers = shape.layers,
                                                 .kv_heads = shape.kv_heads,
                                                 .head_dim = shape.head_dim,
                                                 .block_tokens = block_tokens,
                                                 .latent_dim = shape.latent_dim,
                                                 .rope_dim = shape.rope_dim});
      ASSERT_TRUE(geometry) << geometry.error().message;
      const auto pool = BlockPool::Make(geometry.value(), {.budget_bytes = 64 << 20});
      ASSERT_TRUE(pool);
      for (const std::uint64_t prefix : {0u, 1u, 16u, 100u, 256u}) {
        PlanWorkload workload = {
            .requests = {}, .shared_prefix = prefix, .block_tokens = block_tokens};
        std::vector<CachedSequence> sequences;
        CachedSequence stem(*pool.value());
        ASSERT_TRUE(stem.Reserve(prefix));
        stem.Advance(prefix);
        for (const std::uint64_t more : {1u, 15u, 70u, 300u}) {
          workload.requests.push_back({.count = 1, .tokens = prefix + more});
          sequences.push_back(stem.Fork());
        }
        stem.Reset();
        for (std::size_t i = 0; i < sequences.size(); ++i) {
          const std::size_t more = workload.requests[i].tokens - prefix;
          ASSERT_TRUE(sequences[i].Reserve(more));
          sequences[i].Advance(more);
        }
        const CachePlan plan = Planned(shape, {}, workload);
        const BlockPoolStats stats = pool.value()->stats();
        EXPECT_TRUE(plan.runs);
        EXPECT_EQ(plan.bytes_per_token, geometry.value().bytes_per_token());
        EXPECT_EQ(plan.block_bytes, geometry.value().block_bytes());
        EXPECT_EQ(plan.blocks, stats.live_blocks);
        EXPECT_EQ(plan.bytes_total, stats.live_bytes);
        EXPECT_EQ(plan.bytes_without_sharing, stats.referenced_bytes);
        std::uint64_t waste = 0;
        for (const CachedSequence& sequence : sequences) waste += sequence.waste_bytes();
        EXPECT_EQ(plan.bytes_empty, waste);
      }
    }
  }
}

TEST(CachePlanTest, RequestsAddUp) {
  const PlanWorkload mix = {.requests = {{8, 512}, {2, 4096}, {1, 1}}, .shared_prefix = 0};
  const CachePlan plan = Planned(kLesson, {}, mix);
  EXPECT_EQ(plan.sequences, 11u);
  EXPECT_EQ(plan.tokens, 8u * 512 + 2 * 4096 + 1);
  EXPECT_EQ(plan.blocks, 8u * 32 + 2 * 256 + 1);
  EXPECT_EQ(plan.bytes_empty, 15u * 4096);
  EXPECT_EQ(plan.bytes_total, plan.tokens * 4096 + plan.bytes_empty);
  EXPECT_EQ(plan.bytes_without_sharing, plan.bytes_total);
  EXPECT_EQ(
      std::accumulate(plan.bytes_per_layer.begin(), plan.bytes_per_layer.end(), std::uint64_t{0}),
      plan.bytes_per_token);
}

TEST(CachePlanTest, WhatFitsIsTheLargestThatDoes) {
  const PlanPolicy policies[] = {
      {}, {.dtype = PlanDType::kInt4, .key_group = 32}, {.dtype = PlanDType::kInt8}};
  for (const PlanPolicy& policy : policies) {
    for (const std::uint64_t prefix : {0u, 40u}) {
      for (const std::uint64_t memory : {0u, 70'000u, 1'000'000u, 12'345'678u}) {
        const PlanWorkload workload = {.requests = {{3, 100}}, .shared_prefix = prefix};
        const auto fit = FitCache(kLesson, policy, workload, memory);
        ASSERT_TRUE(fit) << fit.error().message;
        const std::uint64_t times = fit.value().times;
        const auto bytes_of = [&](std::uint64_t count, std::uint64_t tokens) {
          return Planned(kLesson, policy,
                         {.requests = {{count, tokens}}, .shared_prefix = std::min(prefix, tokens)})
              .bytes_total;
        };
        EXPECT_LE(times > 0 ? bytes_of(3 * times, 100) : 0, memory);
        EXPECT_GT(bytes_of(3 * (times + 1), 100), memory);
        const std::uint64_t longest = fit.value().longest.value();
        EXPECT_LE(longest > 0 ? bytes_of(3, longest) : 0, memory);
        EXPECT_GT(bytes_of(3, longest + 1), memory);
      }
    }
  }
}

TEST(CachePlanTest, WithAWindowAnyLengthMayFit) {
  const PlanPolicy policy = {.window = 64, .sinks = 4};
  const auto fit = FitCache(kLesson, policy, One(1000), 6 * 65536);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit.value().longest, CacheFit::kEndless);
  EXPECT_EQ(fit.value().times, 1u);
  EXPECT_EQ(FitCache(kLesson, policy, One(1000), 6 * 65536 - 1).value().longest, 80u);
  // Requests of several lengths have no longest one; those that are all prefix take nothing more.
  EXPECT_EQ(FitCache(kLesson, {}, {.requests = {{1, 5}, {1, 6}}}, 1 << 20).value().longest,
            std::nullopt);
  const PlanWorkload same = {.requests = {{7, 32}}, .shared_prefix = 32};
  EXPECT_EQ(FitCache(kLesson, {}, same, 2 * 65536).value().times, CacheFit::kEndless);
  EXPECT_EQ(FitCache(kLesson, {}, same, 2 * 65536 - 1).value().times, 0u);
}

TEST(CachePlanTest, RefusesByName) {
  const PlanPolicy full;
  for (const std::uint64_t layers : {std::uint64_t{0}, kMaxPlanLayers + 1, kMost}) {
    EXPECT_THAT(Refusal({.layers = layers, .kv_heads = 1, .head_dim = 1}, full, One(1)),
                HasSubstr(fmt::format("layers is {}, but must be 1 to 65536", layers)));
  }
  EXPECT_THAT(Refusal({.layers = 1, .head_dim = 8}, full, One(1)), HasSubstr("kv_heads is 0"));
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 8}, full, One(1)), HasSubstr("head_dim 0"));
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 8, .head_dim = 8, .latent_dim = 9}, full, One(1)),
              HasSubstr("latent_dim is 9 beside kv_heads 8"));
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 8, .head_dim = 8, .rope_dim = 9}, full, One(1)),
              HasSubstr("rope_dim is 9"));
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 8, .head_dim = 8}, {.hidden = true}, One(1)),
              HasSubstr("embedding is 0"));
  EXPECT_THAT(Refusal(kLesson, {.dtype = PlanDType::kF16, .hidden = true}, One(1)),
              HasSubstr("not f16"));
  EXPECT_THAT(Refusal(kLesson, {.sinks = 4}, One(1)), HasSubstr("sinks is 4"));
  EXPECT_THAT(Refusal(kLesson, {.dtype = PlanDType::kInt4, .key_group = 24}, One(1)),
              HasSubstr("key_group is 24, but must be a multiple of 16"));
  EXPECT_THAT(Refusal(kLesson, {.dtype = PlanDType::kInt8, .key_group = 32}, One(1)),
              HasSubstr("key_group is 32, but is for int4"));
  for (const std::uint64_t block_tokens : {0u, 7u, 272u, 1'000'000'000u}) {
    EXPECT_THAT(Refusal(kLesson, full, One(1, block_tokens)),
                HasSubstr(fmt::format("block_tokens is {}", block_tokens)));
  }
  EXPECT_THAT(Refusal(kLesson, full, {}), HasSubstr("no requests"));
  EXPECT_THAT(Refusal(kLesson, full, {.requests = {{0, 5}}}), HasSubstr("0 requests of 5 tokens"));
  EXPECT_THAT(Refusal(kLesson, full, {.requests = {{5, 0}}}), HasSubstr("5 requests of 0 tokens"));
  EXPECT_THAT(Refusal(kLesson, full, {.requests = {{1, 9}, {1, 8}}, .shared_prefix = 9}),
              HasSubstr("shared_prefix is 9, but a request has only 8 tokens"));
  EXPECT_THAT(Refusal(kLesson, {.window = 8}, {.requests = {{1, 9}}, .shared_prefix = 1}),
              HasSubstr("a window of 8"));
}

TEST(CachePlanTest, RefusesWhatIsBeyond64Bits) {
  const PlanShape shapes[] = {{.layers = 2, .kv_heads = kMost, .head_dim = 1},
                              {.layers = 2, .kv_heads = 1, .head_dim = kMost},
                              {.layers = 65536, .kv_heads = 1 << 24, .head_dim = 1 << 24},
                              {.layers = 1, .latent_dim = kMost, .rope_dim = kMost}};
  for (const PlanShape& shape : shapes) {
    for (const PlanDType dtype : kPlanDTypes) {
      EXPECT_THAT(Refusal(shape, {.dtype = dtype}, One(16)), HasSubstr("larger than 2^64 bytes"));
    }
  }
  EXPECT_THAT(Refusal(kLesson, {}, One(kMost)),
              HasSubstr("4 kv heads × 32 × 4 bytes a token, 1 × 18446744073709551615 tokens"));
  EXPECT_THAT(Refusal(kLesson, {}, {.requests = {{kMost, 16}}}), HasSubstr("2^64"));
  EXPECT_THAT(Refusal(kLesson, {}, {.requests = {{1, std::uint64_t{1} << 52}}}), HasSubstr("2^64"));
  EXPECT_THAT(Refusal(kLesson, {.hidden = true}, {.requests = {{1 << 30, std::uint64_t{1} << 30}}}),
              HasSubstr("2^64"));
  const PlanPolicy grouped = {.dtype = PlanDType::kInt4, .key_group = kMost - 15};
  EXPECT_THAT(Refusal(kLesson, grouped, One(1)), HasSubstr("2^64"));
  // The most that there is: all but one block of 2^64 bytes.
  const PlanShape byte_wide = {.layers = 1, .kv_heads = 1, .head_dim = 2};
  const std::uint64_t most_tokens = (kMost / 16 / 16) * 16;
  EXPECT_EQ(Planned(byte_wide, {}, One(most_tokens)).bytes_total, most_tokens * 16);
  // A window holds little, but its tokens are still counted.
  const PlanPolicy window = {.window = kMost, .sinks = kMost};
  EXPECT_EQ(Planned(kLesson, window, One(100)).blocks, 7u);
  std::vector<PlanRequests> many(1000, {kMost / 2, 1});
  EXPECT_THAT(Refusal(kLesson, {}, {.requests = many}), HasSubstr("…"));
}

}  // namespace
}  // namespace kvasir::kvcache
