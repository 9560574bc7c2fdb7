#include "eval/sequence_logits.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "eval/eval_test_models.h"
#include "eval/model_cache.h"

namespace kvasir::eval {
namespace {

TEST(SequenceLogitsTest, ArrangementChangesNoBit) {
  const auto model = TinyGpt2(65);
  std::vector<base::TokenId> tokens(40);
  std::iota(tokens.begin(), tokens.end(), 3u);
  base::ThreadTeam one(1);
  const auto expected = SequenceLogits(*model, tokens, {.prefill_chunk = 1}, one);
  ASSERT_TRUE(expected);
  ASSERT_EQ(expected.value().size(), 40u * 65);
  base::ThreadTeam three(3);
  for (const bool cached : {true, false}) {
    for (const std::uint64_t chunk : {0u, 1u, 7u, 40u, 99u}) {
      const auto logits = SequenceLogits(
          *model, tokens, {.block_tokens = 48, .prefill_chunk = chunk, .kv_cache = cached}, three);
      ASSERT_TRUE(logits);
      EXPECT_EQ(logits.value(), expected.value()) << chunk << cached;
    }
  }
}

TEST(SequenceLogitsTest, RefusesWhatDoesNotFit) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  EXPECT_EQ(SequenceLogits(*model, {}, {}, team).error().message,
            "the text has 0 tokens; allowed are 1 to 40, the context");
  const std::vector<base::TokenId> long_text(41, 1u);
  EXPECT_EQ(SequenceLogits(*model, long_text, {}, team).error().code, base::ErrorCode::kUsage);
  const std::vector<base::TokenId> unknown = {64, 65};
  EXPECT_EQ(SequenceLogits(*model, unknown, {}, team).error().code, base::ErrorCode::kUsage);
  const std::vector<base::TokenId> fine = {64};
  EXPECT_EQ(SequenceLogits(*model, fine, {.block_tokens = 17}, team).error().code,
            base::ErrorCode::kUsage);
}

TEST(SequenceLogitsTest, NonFiniteLogitsNameTheirPosition) {  // Case C11
  const auto inner = TinyGpt2(65);
  const MeddledModel model(*inner, [](const MeddledModel::Step& step) {
    if (step.lengths[0] <= 5 && 5 < step.lengths[0] + step.items[0].tokens.size()) {
      step.logits[(5 - step.lengths[0]) * 65 + 3] = std::numeric_limits<float>::infinity();
    }
  });
  const std::vector<base::TokenId> tokens(9, 1u);
  base::ThreadTeam team(1);
  for (const std::uint64_t chunk : {0u, 1u, 4u}) {
    const auto refused = SequenceLogits(model, tokens, {.prefill_chunk = chunk}, team);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kNumeric);
    EXPECT_EQ(refused.error().message,
              "the logit of token 3 at position 5 is inf: the model's numbers overflow");
  }
}

TEST(ModelCacheTest, BudgetHoldsTheSequencesAskedFor) {
  const auto model = TinyGpt2(65);
  const auto pool = MakeModelCache(model->shape(), {.block_tokens = 16, .sequences = 3});
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool.value()->stats().capacity_blocks, 3u * (3 + 1));
  EXPECT_EQ(pool.value()->stats().storage_bytes(), 0u);
  const auto huge = MakeModelCache(model->shape(), {.sequences = std::uint64_t{1} << 60});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, base::ErrorCode::kUsage);
}

}  // namespace
}  // namespace kvasir::eval
