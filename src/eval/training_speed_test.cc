#include "eval/training_speed.h"

#include <gtest/gtest.h>

namespace kvasir::eval {
namespace {

constexpr model::Gpt2Config kTiny = {
    .layers = 1, .heads = 2, .embedding = 16, .feed_forward = 32, .context = 8, .vocab = 40};

TEST(TrainingSpeedTest, CountsTokensAndFlops) {
  base::ThreadTeam team(2);
  const auto speed = MeasureTraining(kTiny, 3, 2, team);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_GT(speed.value().ms_per_step, 0.0);
  EXPECT_NEAR(speed.value().tokens_per_s * speed.value().ms_per_step, 1e3 * 3 * 8, 1e-6);
  // Per token: the matrices of a layer whose MLP is twice the width, the head, and on average
  // 4.5 positions seen by scores and by values.
  const double multiply_adds = 8 * 16 * 16 + 40 * 16 + 2 * 4.5 * 16;
  EXPECT_NEAR(speed.value().gflop_per_s / speed.value().tokens_per_s, 1e-9 * 6 * multiply_adds,
              1e-15);
}

TEST(TrainingSpeedTest, RefusesABatchOfNothing) {
  base::ThreadTeam team(1);
  const auto speed = MeasureTraining(kTiny, 0, 1, team);
  ASSERT_FALSE(speed);
  EXPECT_EQ(speed.error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::eval
