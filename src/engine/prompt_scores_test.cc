#include "engine/prompt_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "engine/engine_test_models.h"
#include "engine/sequence_pool.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {
namespace {

class PromptScoresTest : public ::testing::Test {
 protected:
  PromptScoresTest()
      : model_(TinyGpt2(40, 96)), cache_(MakeSequenceManager(model_->shape(), {}).value()) {}

  // A row that depends on its position.
  std::vector<float> Row(std::size_t position) const {
    std::vector<float> row(40, 0.0f);
    row[position % 40] = 1.0f + static_cast<float>(position);
    return row;
  }
  // Makes the first positions of the prompt cached.
  void Compute(kvcache::SequenceId id, std::size_t count) {
    ASSERT_TRUE(cache_->cache(id).Reserve(count));
    const std::size_t begin = cache_->cache(id).length();
    cache_->cache(id).Advance(count);
    cache_->Commit(id, std::span(request_.prompt).subspan(begin, count));
  }

  std::unique_ptr<model::Gpt2Model> model_;
  std::unique_ptr<kvcache::SequenceManager> cache_;
  GenerateRequest request_ = {.prompt = std::vector<TokenId>(20, 7), .top_logprobs = 2};
};

TEST_F(PromptScoresTest, AreTakenInOrderAndLeftWithTheCache) {
  PromptScores scores(request_, 40);
  const kvcache::SequenceId id = cache_->Create();
  Compute(id, 12);
  for (std::size_t position = 0; position < 12; ++position) {
    EXPECT_EQ(scores.next_row(), position);
    ASSERT_TRUE(scores.Take(position, Row(position)));
  }
  ASSERT_TRUE(scores.Take(3, Row(30))) << "scored already: ignored";
  EXPECT_FALSE(scores.LeaveWith(*cache_, id));
  Compute(id, 8);
  for (std::size_t position = 12; position < 19; ++position) {
    ASSERT_TRUE(scores.Take(position, Row(position)));
  }
  EXPECT_TRUE(scores.LeaveWith(*cache_, id));
  ASSERT_EQ(scores.tokens().size(), 19u);
  for (std::size_t t = 1; t < 20; ++t) {
    const GeneratedToken& token = scores.tokens()[t - 1];
    EXPECT_EQ(token.id, 7u);
    EXPECT_EQ(token.logprob, sampling::LogProb(Row(t - 1), 7).value());
    EXPECT_EQ(token.top.size(), 2u);
    ASSERT_NE(cache_->LogProbs(id, t), nullptr);
    EXPECT_EQ(cache_->LogProbs(id, t)->logprob, token.logprob);
    EXPECT_EQ(cache_->LogProbs(id, t)->best.size(), kvcache::kKeptAlternatives);
  }
  // Another finds them, and gives up the position whose row it needs next.
  PromptScores found(request_, 40);
  const kvcache::SequenceId twin = cache_->Fork(id);
  found.TakeFromCache(*cache_, twin, 20);
  EXPECT_EQ(found.next_row(), 19u);
  EXPECT_EQ(cache_->cache(twin).length(), 19u);
  EXPECT_EQ(found.tokens()[5].logprob, scores.tokens()[5].logprob);
}

// A sequence gives way with a score that is not left yet, and finds that another has been further.
TEST_F(PromptScoresTest, WhatWasNotLeftHasNoMoreAlternativesThanAskedFor) {
  PromptScores other(request_, 40);
  const kvcache::SequenceId id = cache_->Create();
  Compute(id, 16);
  for (std::size_t position = 0; position < 15; ++position) {
    ASSERT_TRUE(other.Take(position, Row(position)));
  }
  EXPECT_FALSE(other.LeaveWith(*cache_, id));
  PromptScores scores(request_, 40);
  for (std::size_t position = 0; position < 3; ++position) {
    ASSERT_TRUE(scores.Take(position, Row(position)));
  }
  scores.TakeFromCache(*cache_, cache_->Fork(id), 16);
  ASSERT_EQ(scores.tokens().size(), 15u);
  for (const GeneratedToken& token : scores.tokens()) EXPECT_EQ(token.top.size(), 2u);
}

TEST_F(PromptScoresTest, ARowThatIsNoDistributionIsNamed) {
  PromptScores scores(request_, 40);
  std::vector<float> row = Row(0);
  ASSERT_TRUE(scores.Take(0, row));
  row[3] = std::numeric_limits<float>::infinity();
  const auto wrong = scores.Take(1, row);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, base::ErrorCode::kNumeric);
  EXPECT_THAT(wrong.error().message, ::testing::HasSubstr("after position 1"));
  EXPECT_EQ(scores.next_row(), 1u);
}

}  // namespace
}  // namespace kvasir::engine
