#include "eval/random_deepseek.h"

#include <gtest/gtest.h>

#include "eval/verify.h"

namespace kvasir::eval {
namespace {

model::DeepseekConfig Small() {
  model::DeepseekConfig config;
  config.layers = 2;
  config.heads = 5;
  config.embedding = 24;
  config.feed_forward = 32;
  config.context = 50;
  config.vocab = 37;
  config.query_rank = 12;
  config.latent_dim = 20;
  config.nope_dim = 8;
  config.value_dim = 6;
  config.rope.dimensions = 4;
  return config;
}

TEST(RandomDeepseekTest, RefusesShapesThatCannotBe) {
  EXPECT_TRUE(MakeRandomDeepseek(Small(), 1));
  model::DeepseekConfig wide = Small();
  wide.latent_dim = 513;
  EXPECT_EQ(MakeRandomDeepseek(wide, 1).error().code, base::ErrorCode::kUsage);
  model::DeepseekConfig huge = Small();
  huge.embedding = 65536;
  huge.vocab = 1 << 24;
  EXPECT_EQ(MakeRandomDeepseek(huge, 1).error().code, base::ErrorCode::kUsage);
}

// The contract, on every axis that does not need a trainer.
TEST(RandomDeepseekTest, VerifyFindsNothingWrongOnAnyAxis) {
  model::DeepseekConfig straight = Small();
  straight.query_rank = 0;
  for (const model::DeepseekConfig& config : {Small(), straight}) {
    const auto model = MakeRandomDeepseek(config, 7);
    ASSERT_TRUE(model) << model.error().message;
    const auto report = Verify(*model.value(), {.trials = 12, .seed = 3});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report.value().mismatches(), 0u) << report.value().first_mismatch;
    for (std::size_t i = 0; i < kVerifyAxes; ++i) {
      const auto axis = static_cast<VerifyAxis>(i);
      if (axis == VerifyAxis::kTrainer) continue;
      EXPECT_GT(report.value().axes[i].comparisons, 12u) << VerifyAxisName(axis);
    }
  }
}

}  // namespace
}  // namespace kvasir::eval
