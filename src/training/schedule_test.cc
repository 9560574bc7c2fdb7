#include "training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "training/options.h"

namespace kvasir::training {
namespace {

TrainOptions Options(Schedule schedule) {
  TrainOptions options;
  options.schedule = schedule;
  options.learning_rate = 0.01;
  options.final_rate = 0.1;
  options.steps = 100;
  options.warmup = 9;
  options.decay_share = 0.25;
  return options;
}

TEST(LearningRate, WarmsUpToThePeak) {
  for (const Schedule schedule : {Schedule::kCosine, Schedule::kWsd}) {
    TrainOptions options = Options(schedule);
    for (std::uint64_t step = 0; step < 9; ++step) {
      EXPECT_DOUBLE_EQ(LearningRate(options, step), 0.001 * static_cast<double>(step + 1));
    }
    EXPECT_DOUBLE_EQ(LearningRate(options, 9), 0.01);
    EXPECT_DOUBLE_EQ(LearningRate(options, 100), 0.001);
    EXPECT_DOUBLE_EQ(LearningRate(options, 1000), 0.001) << "beyond the end it stays";
    options.warmup = 0;
    EXPECT_DOUBLE_EQ(LearningRate(options, 0), 0.01);
  }
}

TEST(LearningRate, CosineIsItsFormula) {
  const TrainOptions options = Options(Schedule::kCosine);
  for (std::uint64_t step = 9; step <= 100; ++step) {
    const double cosine = std::cos(M_PI * static_cast<double>(step - 9) / 91.0);
    EXPECT_NEAR(LearningRate(options, step), 0.001 + 0.009 * 0.5 * (1 + cosine), 1e-15);
  }
}

TEST(LearningRate, WsdIsLevelThenALine) {
  const TrainOptions options = Options(Schedule::kWsd);
  for (std::uint64_t step = 9; step <= 75; ++step) {
    EXPECT_EQ(LearningRate(options, step), 0.01);
  }
  for (std::uint64_t step = 75; step <= 100; ++step) {
    EXPECT_NEAR(LearningRate(options, step), 0.01 - 0.009 * static_cast<double>(step - 75) / 25.0,
                1e-15);
  }
}

TEST(LearningRate, WsdBeforeItsDecayDoesNotKnowTheEnd) {
  const TrainOptions options = Options(Schedule::kWsd);
  TrainOptions longer = options;
  longer.steps = 1000;
  for (std::uint64_t step = 0; step <= 75; ++step) {
    EXPECT_EQ(LearningRate(options, step), LearningRate(longer, step));
  }
  EXPECT_NE(LearningRate(options, 80), LearningRate(longer, 80));
}

TEST(LearningRate, ADecayOfAllStepsBeginsAfterTheWarmUp) {
  TrainOptions options = Options(Schedule::kWsd);
  options.decay_share = 1;
  EXPECT_DOUBLE_EQ(LearningRate(options, 9), 0.01);
  EXPECT_LT(LearningRate(options, 10), 0.01);
  options.warmup = 200;  // Longer than the run: never beyond the peak.
  EXPECT_LE(LearningRate(options, 99), 0.01);
}

}  // namespace
}  // namespace kvasir::training
