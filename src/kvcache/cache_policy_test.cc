#include "kvcache/cache_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "kvcache/policy_matrix.h"

namespace kvasir::kvcache {
namespace {

using kernels::KvType;

constexpr PolicyShape kShape = {.layers = 4, .kv_heads = 4, .head_dim = 32};

CachePolicy Parsed(std::string_view spec) {
  auto policy = CachePolicy::Parse(spec, kShape);
  EXPECT_TRUE(policy.has_value()) << policy.error().message;
  return policy.value();
}

TEST(CachePolicy, FullIsTheDefault) {
  const CachePolicy full = CachePolicy::Full(4, 4);
  EXPECT_TRUE(full.IsFull());
  EXPECT_TRUE(full.IsLossless());
  EXPECT_EQ(full.Canonical(), "full,dtype=f32");
  EXPECT_EQ(full.At(3, 3), HeadPolicy{});
  EXPECT_EQ(full.Layer(2).size(), 4u);
  EXPECT_EQ(CachePolicy::Full(4, 0).kv_heads(), 1u);  // Latent: one entry a layer.
}

TEST(CachePolicy, CanonicalTextIsShortAndOneForEqualPolicies) {
  EXPECT_EQ(Parsed("k=f16,v=f16").Canonical(), "full,dtype=f16");
  EXPECT_EQ(Parsed("0-3:dtype=int4,group=32,window=9,rotate").Canonical(),
            "window=9,dtype=int4,group=32,rotate");
  EXPECT_EQ(Parsed("k=int4,group=32,v=int8").Canonical(), "full,k=int4,v=int8,group=32");
  EXPECT_EQ(Parsed("0+2-3:store=hidden").Canonical(), "0+2-3:full,dtype=f32,store=hidden");
  EXPECT_EQ(Parsed("dtype=f16;2-3:dtype=int8,window=64,sinks=4;1.0-1:window=32").Canonical(),
            "0:full,dtype=f16;1.0-1:window=32,dtype=f16;1.2-3:full,dtype=f16;"
            "2-3:window=64,sinks=4,dtype=int8");
  EXPECT_EQ(Parsed("0+1+2+3.0+3:store=none").Canonical(), "0-3.0+3:full,dtype=f32,store=none");
  EXPECT_EQ(Parsed("3:k=f16;3:v=f16"), Parsed("dtype=f16;0-2:dtype=f32"));
  EXPECT_EQ(Parsed("3:k=f16;3:v=f16").Canonical(), Parsed("dtype=f16;0-2:dtype=f32").Canonical());
}

HeadPolicy RandomHead(std::mt19937& random) {
  constexpr KvType kTypes[] = {KvType::kF32,  KvType::kF16,  KvType::kBf16,
                               KvType::kInt8, KvType::kInt4, KvType::kInt4Channel};
  for (;;) {
    HeadPolicy head = {.k = kTypes[random() % 6], .v = kTypes[random() % 5]};
    if (head.k == KvType::kInt4Channel) head.group = kKeyGroups[random() % 5];
    head.rotate = random() % 2 == 0;
    if (random() % 2 == 0) head.window = 1 + random() % 300;
    if (head.window != 0) head.sinks = random() % (1 + std::min<std::uint64_t>(head.window, 256));
    if (random() % 8 == 0) head = {.window = head.window, .store = KvStore::kNone};
    if (FirstConflict(FeaturesOf(head), false) == nullptr) return head;
  }
}

TEST(CachePolicy, CanonicalTextParsesBackToEveryPolicy) {
  constexpr std::uint32_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::set<std::string> texts;
  std::vector<CachePolicy> policies;
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<HeadPolicy> choices = {HeadPolicy{}, RandomHead(random), RandomHead(random)};
    std::vector<HeadPolicy> heads;
    for (int i = 0; i < 16; ++i) heads.push_back(choices[random() % 3]);
    const CachePolicy policy = CachePolicy::Of(4, 4, heads);
    const std::string text = policy.Canonical();
    const auto again = CachePolicy::Parse(text, kShape);
    ASSERT_TRUE(again.has_value()) << text << ": " << again.error().message;
    ASSERT_EQ(again.value(), policy) << text;
    ASSERT_EQ(again.value().Canonical(), text);
    bool seen = false;
    for (const CachePolicy& other : policies) seen = seen || other == policy;
    EXPECT_EQ(texts.insert(text).second, !seen) << text;
    policies.push_back(policy);
  }
}

TEST(CachePolicy, LosslessIsWhatKeepsTheLogits) {
  for (const char* spec : {"full", "store=hidden", "store=none", "1.2:store=none;2:store=hidden"}) {
    EXPECT_TRUE(Parsed(spec).IsLossless()) << spec;
  }
  for (const char* spec : {"k=f16", "3.3:v=bf16", "rotate", "0:window=1000", "dtype=int4,group=16",
                           "store=none;1:store=none,window=4"}) {
    EXPECT_FALSE(Parsed(spec).IsLossless()) << spec;
    EXPECT_FALSE(Parsed(spec).IsFull()) << spec;
  }
  EXPECT_FALSE(Parsed("store=hidden").IsFull());
}

TEST(CachePolicy, TheNarrowerWindowCounts) {
  CachePolicy policy = Parsed("window=64,sinks=4;2:full");
  const std::uint64_t windows[] = {0, 32, 128, 100};
  policy.LimitWindows(windows);
  EXPECT_EQ(policy.At(0, 0), (HeadPolicy{.window = 64, .sinks = 4}));  // The model sees all.
  EXPECT_EQ(policy.At(1, 3), (HeadPolicy{.window = 32}));              // The model's own, alone.
  EXPECT_EQ(policy.At(2, 1), (HeadPolicy{.window = 128}));
  EXPECT_EQ(policy.At(3, 0), (HeadPolicy{.window = 64, .sinks = 4}));
  // As wide as the model's own: the model's function, exactly.
  CachePolicy same = Parsed("window=32,sinks=4");
  const std::uint64_t equal[] = {32, 32, 32, 32};
  same.LimitWindows(equal);
  EXPECT_EQ(same, Parsed("window=32"));
}

TEST(CachePolicyDeathTest, RequiresFittingNumbers) {
  EXPECT_DEATH(CachePolicy::Of(2, 2, std::vector<HeadPolicy>(3)), "heads.size");
  const CachePolicy policy = CachePolicy::Full(2, 2);
  EXPECT_DEATH(policy.At(2, 0), "layer < layers_");
  EXPECT_DEATH(policy.At(0, 2), "kv_head < kv_heads_");
}

}  // namespace
}  // namespace kvasir::kvcache
