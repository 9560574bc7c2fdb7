// Benchmarks are tested for what they check and count, never for time.
#include "eval/attention_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "eval/eval_test_models.h"
#include "eval/random_deepseek.h"
#include "eval/random_llama.h"

namespace kvasir::eval {
namespace {

model::LlamaConfig Small(std::uint64_t kv_heads) {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = kv_heads;
  config.head_dim = config.rope.dimensions = 8;
  config.embedding = 32;
  config.feed_forward = 48;
  config.context = 300;
  config.vocab = 37;
  return config;
}

TEST(AttentionSpeedTest, CountsBytesOfEveryVariantAtEveryLength) {
  const auto all = MakeRandomLlama(Small(4), 1), few = MakeRandomLlama(Small(1), 1);
  model::DeepseekConfig latent;
  latent.layers = 2;
  latent.heads = 4;
  latent.embedding = 32;
  latent.context = 300;
  latent.vocab = 37;
  latent.latent_dim = 10;
  latent.rope.dimensions = 4;
  const auto absorbed = MakeRandomDeepseek(latent, 1);
  ASSERT_TRUE(all && few && absorbed);
  const AttentionVariant variants[] = {
      {"all", all.value().get()}, {"few", few.value().get()}, {"latent", absorbed.value().get()}};
  base::ThreadTeam team(2);
  const auto speeds = MeasureAttention(variants, {290, 1, 33}, 3, team);
  ASSERT_TRUE(speeds) << speeds.error().message;
  ASSERT_EQ(speeds.value().size(), 9u);
  const std::uint64_t per_token[] = {2 * 4 * 8 * 2 * 4, 2 * 1 * 8 * 2 * 4, 2 * 14 * 4};
  const std::uint64_t lengths[] = {1, 33, 290};
  for (std::size_t i = 0; i < 9; ++i) {
    const AttentionSpeed& speed = speeds.value()[i];
    EXPECT_EQ(speed.name, variants[i % 3].name);
    EXPECT_EQ(speed.length, lengths[i / 3]);
    EXPECT_EQ(speed.cache_bytes_per_token, per_token[i % 3]);
    EXPECT_EQ(speed.cache_bytes, speed.length * per_token[i % 3]);
    EXPECT_EQ(speed.weight_bytes, variants[i % 3].model->shape().work.weights * 4);
    EXPECT_GT(speed.us_best, 0.0);
    EXPECT_GE(speed.us_per_token, speed.us_best);
    if (i % 3 == 0) {
      EXPECT_EQ(speed.ratio, 1.0);
    }
  }
}

TEST(AttentionSpeedTest, RefusesLengthsThatDoNotFit) {
  const auto model = MakeRandomLlama(Small(2), 1);
  const AttentionVariant variant = {"m", model.value().get()};
  base::ThreadTeam team(1);
  for (const std::uint64_t length : {0u, 301u}) {
    const auto speeds = MeasureAttention({&variant, 1}, {length}, 1, team);
    ASSERT_FALSE(speeds);
    EXPECT_EQ(speeds.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(speeds.error().message, testing::HasSubstr(std::to_string(length) + " tokens"));
  }
}

TEST(AttentionSpeedTest, TimesNothingThatIsWrong) {
  const auto model = MakeRandomLlama(Small(2), 1);
  const MeddledModel wrong(*model.value(), [](const MeddledModel::Step& step) {
    if (step.lengths[0] == 32 && !step.logits.empty()) {
      step.logits[3] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(step.logits[3]) ^ 1u);
    }
  });
  const AttentionVariant variant = {"wrong", &wrong};
  base::ThreadTeam team(1);
  EXPECT_TRUE(MeasureAttention({&variant, 1}, {32}, 1, team));
  const auto speeds = MeasureAttention({&variant, 1}, {33}, 1, team);
  ASSERT_FALSE(speeds);
  EXPECT_EQ(speeds.error().code, base::ErrorCode::kNumeric);
}

}  // namespace
}  // namespace kvasir::eval
