// What is compared and checked; never the time itself.
#include "eval/paging_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "eval/eval_test_models.h"

namespace kvasir::eval {
namespace {

using testing::HasSubstr;

TEST(PagingCostTest, ComparesEachBlockSizeWithOneBlock) {
  const auto model = TinyGpt2(65, /*context=*/300);
  base::ThreadTeam team(1);
  for (const std::uint64_t tokens : {2u, 20u, 32u, 33u, 300u}) {
    const auto costs = MeasurePagingCost(
        *model, {.tokens = tokens, .block_tokens = {16, 48, 256}, .repetitions = 3}, team);
    ASSERT_TRUE(costs) << costs.error().message;
    ASSERT_EQ(costs.value().size(), 4u);
    EXPECT_EQ(costs.value()[0].block_tokens, (tokens + 15) / 16 * 16);
    EXPECT_EQ(costs.value()[0].ratio, 1);
    EXPECT_EQ(costs.value()[1].block_tokens, 16u);
    EXPECT_EQ(costs.value()[2].block_tokens, 48u);
    EXPECT_EQ(costs.value()[3].block_tokens, 256u);
    for (const PagingCost& cost : costs.value()) {
      EXPECT_GT(cost.ms_per_step, 0);
      EXPECT_GT(cost.ratio, 0);
      EXPECT_LT(cost.waste, 1);
    }
    EXPECT_DOUBLE_EQ(costs.value()[1].waste, 7.5 / (7.5 + static_cast<double>(tokens)));
  }
}

TEST(PagingCostTest, TimesNothingThatIsWrong) {
  const auto inner = TinyGpt2(65);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.logits.empty()) return;
    if (step.items[0].sequence->geometry().block_tokens() != 32) return;
    step.logits[5] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(step.logits[5]) ^ 1u);
  });
  base::ThreadTeam team(1);
  PagingCostOptions options = {.tokens = 40, .block_tokens = {16}, .repetitions = 1};
  EXPECT_TRUE(MeasurePagingCost(model, options, team));
  options.block_tokens = {16, 32};
  const auto wrong = MeasurePagingCost(model, options, team);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(wrong.error().message, HasSubstr("blocks of 32 tokens give other logits"));
}

TEST(PagingCostTest, RefusesByName) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  for (const std::uint64_t tokens :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{41}, ~std::uint64_t{0}}) {
    const auto refused = MeasurePagingCost(*model, {.tokens = tokens, .block_tokens = {16}}, team);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("2 to 40"));
  }
  for (const std::uint64_t block_tokens : {0u, 7u, 272u, 1'000'000'000u}) {
    const auto refused =
        MeasurePagingCost(*model, {.tokens = 20, .block_tokens = {16, block_tokens}}, team);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message,
                HasSubstr(fmt::format("block_tokens is {}", block_tokens)));
  }
}

}  // namespace
}  // namespace kvasir::eval
