#include "eval/cache_compare.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eval/eval_test_models.h"
#include "eval/random_stream.h"

namespace kvasir::eval {
namespace {

using kvcache::CachePolicy;

// The lesson's model.
model::ModelShape LessonShape() {
  model::ModelShape shape;
  shape.layers = 4;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 32;
  shape.embedding = 128;
  shape.context = 128;
  return shape;
}

std::uint64_t Bytes(const std::string& spec, std::uint64_t length) {
  const model::ModelShape shape = LessonShape();
  const auto policy = CachePolicy::Parse(spec, shape.Policy());
  EXPECT_TRUE(policy) << policy.error().message;
  const auto bytes = PolicyBytes(shape, policy.value(), 16, length);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes.value();
}

TEST(CacheCompareTest, BytesAreThoseOfTheLessonsModel) {
  const std::uint64_t full = 128 * 4096;
  EXPECT_EQ(Bytes("full", 128), full);
  EXPECT_EQ(Bytes("dtype=f16", 128), full / 2);
  EXPECT_EQ(Bytes("dtype=int8", 128), full / 32 * 17 / 2);  // 8.5 bits of 32
  EXPECT_EQ(Bytes("dtype=int4", 128), full * 5 / 32);       // 5 bits
  // 5 bits of K and 8.5 of V, and at 144 16 keys in f32 beside.
  EXPECT_EQ(Bytes("k=int4,group=32,v=int8", 128), full * 27 / 128);
  EXPECT_EQ(Bytes("store=hidden", 128), full / 2);
  EXPECT_EQ(Bytes("store=none", 128), 0u);
  EXPECT_EQ(Bytes("window=32", 512), Bytes("window=32", 5120));
}

TEST(CacheCompareTest, TheDefaultListParsesForEveryShape) {
  for (const bool rotary : {false, true}) {
    for (const std::uint64_t layers : {1u, 2u, 5u}) {
      for (const std::uint64_t kv_heads : {1u, 3u}) {
        for (const std::uint64_t context : {1u, 7u, 128u}) {
          model::ModelShape shape = LessonShape();
          shape.layers = layers;
          shape.kv_heads = kv_heads;
          shape.context = context;
          shape.rotary = rotary;
          const auto policies = DefaultPolicies(shape);
          EXPECT_GE(policies.size(), 12u);
          EXPECT_EQ(policies[0], "full");
          for (const std::string& spec : policies) {
            const auto policy = CachePolicy::Parse(spec, shape.Policy());
            EXPECT_TRUE(policy) << spec << ": " << policy.error().message;
          }
        }
      }
    }
  }
  model::ModelShape latent = LessonShape();
  latent.kv_heads = latent.head_dim = 0;
  latent.latent_dim = 16;
  EXPECT_EQ(DefaultPolicies(latent), std::vector<std::string>{"full"});
}

TEST(CacheCompareTest, EveryDefaultPolicyHasItsPriceInOrder) {
  const auto model = TinyGpt2(65);
  RandomStream random(9);
  std::vector<base::TokenId> tokens(90);
  for (auto& token : tokens) token = static_cast<base::TokenId>(random.Below(65));
  std::vector<CachePolicy> policies;
  for (const std::string& spec : DefaultPolicies(model->shape())) {
    policies.push_back(CachePolicy::Parse(spec, model->shape().Policy()).value());
  }
  base::ThreadTeam team(2);
  const auto compared = ComparePolicies(*model, tokens, policies, {.repetitions = 1}, team);
  ASSERT_TRUE(compared) << compared.error().message;
  ASSERT_EQ(compared.value().policies.size(), policies.size());
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const PolicyPrice& price = compared.value().policies[i];
    EXPECT_EQ(price.check.mismatches, 0u) << policies[i].Canonical();
    EXPECT_GE(price.check.comparisons, 8u);
    EXPECT_EQ(price.evidence.kl_mean == 0, policies[i].IsLossless()) << policies[i].Canonical();
    EXPECT_EQ(price.evidence.tokens, 89u);
    EXPECT_GT(price.tokens_per_s_start, 0);
    EXPECT_GT(price.tokens_per_s_end, 0);
    const double change = 100 * (price.evidence.perplexity / compared.value().full.perplexity - 1);
    EXPECT_DOUBLE_EQ(price.perplexity_change, change);
  }
  EXPECT_EQ(compared.value().policies[0].perplexity_change, 0);
}

}  // namespace
}  // namespace kvasir::eval
