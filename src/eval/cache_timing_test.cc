// What the timing checks and how it adds up; never the time itself.
#include "eval/cache_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "eval/eval_test_models.h"

namespace kvasir::eval {
namespace {

using testing::HasSubstr;

TEST(CacheTimingTest, MeasuresEveryCell) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(2);
  const auto timings = MeasureCacheTiming(
      *model, {.lengths = {1, 16, 17, 40}, .batches = {1, 3}, .repetitions = 2}, team);
  ASSERT_TRUE(timings) << timings.error().message;
  ASSERT_EQ(timings.value().size(), 2u);
  for (const BatchTiming& timing : timings.value()) {
    ASSERT_EQ(timing.steps.size(), 4u);
    ASSERT_EQ(timing.texts.size(), 4u);
    EXPECT_TRUE(timing.step_with && timing.text_without && timing.text_cubic);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(timing.steps[i].tokens, timing.texts[i].tokens);
      EXPECT_GT(timing.steps[i].ms_with, 0);
      EXPECT_GT(timing.steps[i].ms_without.value(), 0);
      EXPECT_GT(timing.steps[i].ratio.value(), 0);
    }
  }
  EXPECT_EQ(timings.value()[0].batch, 1u);
  EXPECT_EQ(timings.value()[1].batch, 3u);
}

TEST(CacheTimingTest, LeavesOutWhatTakesTooLong) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  const CacheTimingOptions no_cell = {
      .lengths = {8, 40}, .batches = {2}, .repetitions = 5, .cell_seconds = 0};
  const CacheTimingOptions no_time = {
      .lengths = {8, 40}, .batches = {2}, .repetitions = 5, .all_seconds = 0};
  for (const CacheTimingOptions& options : {no_cell, no_time}) {
    const auto timings = MeasureCacheTiming(*model, options, team);
    ASSERT_TRUE(timings) << timings.error().message;
    for (const StepTime& step : timings.value()[0].steps) {
      EXPECT_GT(step.ms_with, 0);
      EXPECT_EQ(step.ms_without, std::nullopt);
      EXPECT_EQ(step.ratio, std::nullopt);
    }
    EXPECT_EQ(timings.value()[0].texts[1].ms_without, std::nullopt);
    EXPECT_EQ(timings.value()[0].step_with, std::nullopt);  // Two lengths.
  }
}

TEST(CacheTimingTest, TimesNothingThatIsWrong) {
  const auto inner = TinyGpt2(65);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.items.size() < 3) return;
    float& last = step.logits.back();
    last = std::bit_cast<float>(std::bit_cast<std::uint32_t>(last) ^ 1u);
  });
  base::ThreadTeam team(1);
  CacheTimingOptions options = {.lengths = {20}, .batches = {2}, .repetitions = 1};
  EXPECT_TRUE(MeasureCacheTiming(model, options, team));
  options.batches = {3};
  const auto wrong = MeasureCacheTiming(model, options, team);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(wrong.error().message, HasSubstr("sequence 3 of 3 at 20 tokens: not timed"));
}

TEST(CacheTimingTest, RefusesLengthsBeyondTheContext) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  for (const std::uint64_t tokens : {std::uint64_t{0}, std::uint64_t{41}, ~std::uint64_t{0}}) {
    const auto refused = MeasureCacheTiming(*model, {.lengths = {tokens}, .batches = {1}}, team);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("1 to 40"));
  }
}

// Steps of a + b·n with, c·n without: the sums are known, and so is every fit.
TEST(CacheTimingTest, TextsAreSumsOverSteps) {
  const double a = 0.25;
  const double b = 0.001;
  const double c = 0.03;
  BatchTiming timing;
  for (const std::uint64_t tokens : {1u, 5u, 32u, 100u, 1000u}) {
    const auto n = static_cast<double>(tokens);
    timing.steps.push_back(
        {.tokens = tokens, .ms_with = a + b * n, .ms_without = c * n, .ratio = 1});
  }
  SumUp(timing);
  for (const TextTime& text : timing.texts) {
    const auto n = static_cast<double>(text.tokens);
    EXPECT_NEAR(text.ms_with, a * n + b * n * (n + 1) / 2, 1e-9 * n);
    EXPECT_NEAR(text.ms_without.value(), c * n * (n + 1) / 2, 1e-9 * n);
  }
  EXPECT_NEAR(timing.step_with->coefficients[0], a, 1e-12);
  EXPECT_NEAR(timing.step_with->coefficients[1], b, 1e-12);
  EXPECT_NEAR(timing.text_without->coefficients[0], c / 2, 1e-9);
  EXPECT_NEAR(timing.text_without->coefficients[1], c / 2, 1e-12);
  EXPECT_NEAR(timing.text_without->r_squared, 1, 1e-12);
  EXPECT_NEAR(timing.text_cubic->coefficients[2], 0, 1e-12);
}

TEST(CacheTimingTest, SumsEndAtTheFirstGap) {
  BatchTiming timing;
  for (const std::uint64_t tokens : {10u, 20u, 30u}) {
    timing.steps.push_back({.tokens = tokens, .ms_with = 1, .ms_without = 2, .ratio = 2});
  }
  timing.steps[1].ms_without = std::nullopt;
  SumUp(timing);
  EXPECT_EQ(timing.texts[0].ms_without, 20);
  EXPECT_EQ(timing.texts[1].ms_without, std::nullopt);
  EXPECT_EQ(timing.texts[2].ms_without, std::nullopt);
  EXPECT_EQ(timing.texts[2].ms_with, 30);
  EXPECT_TRUE(timing.step_with);
  EXPECT_EQ(timing.text_without, std::nullopt);
}

}  // namespace
}  // namespace kvasir::eval
