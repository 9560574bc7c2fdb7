#include "engine/batch.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "constraints/drawable_tokens.h"
#include "engine/engine_test_models.h"
#include "engine/sequence_pool.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kBlockBytes = 16 * 2 * 24 * 2 * 4;  // Of TinyGpt2.

class BatchTest : public ::testing::Test {
 protected:
  BatchTest()
      : vocabulary_(VocabularyOf("\n。，春眠不觉晓处闻啼鸟夜来风雨声花落知多少")),
        model_(TinyGpt2(vocabulary_.size(), 96)),
        drawable_(constraints::DefaultMask(vocabulary_)) {}

  void Make(GeneratorOptions options, std::uint64_t busy_step_tokens = 0) {
    cache_ = MakeSequenceManager(model_->shape(), options).value();
    batch_ = std::make_unique<Batch>(*model_, team_, *cache_, options,
                                     StepPace{.most_tokens = busy_step_tokens});
  }
  // A request whose tokens from `parting` on depend on salt, and its one sequence.
  ActiveRequest& Add(std::size_t prompt, std::size_t parting = 0, std::size_t salt = 0) {
    ActiveRequest& request =
        requests_.emplace_back(ActiveRequest{.id = RequestId{requests_.size() + 1},
                                             .request = {},
                                             .listener = nullptr,
                                             .account = &queue_.Join(""),
                                             .finished = {false},
                                             .unfinished = 1});
    const TokenId first = vocabulary_.FindPiece("\n").value();
    for (std::size_t i = 0; i < prompt; ++i) {
      const std::size_t mixed = i * 7 + (i >= parting ? salt * 5 : 0);
      request.request.generate.prompt.push_back(
          first + static_cast<TokenId>(mixed % (vocabulary_.size() - first)));
    }
    batch_->Add(std::make_unique<BatchSequence>(
        BatchSequence{.owner = &request,
                      .choice = std::make_unique<Choice>(request.generate(), 0, model_->shape(),
                                                         vocabulary_, drawable_),
                      .lease = SequenceLease(*cache_, cache_->Create())}));
    return request;
  }
  // Computes a step and lets every choice take its rows.
  std::vector<StepShare> Step() {
    std::vector<StepShare> shares = batch_->Compute();
    for (const StepShare& share : shares) {
      EXPECT_FALSE(share.error);
      for (std::size_t row = 0; row < share.rows; ++row) {
        EXPECT_TRUE(share.sequence->choice->Take(
            share.logits.subspan(row * vocabulary_.size(), vocabulary_.size())));
      }
    }
    batch_->Settle(shares);
    cache_->CheckInvariants();
    return shares;
  }

  tokenizer::Vocabulary vocabulary_;
  std::unique_ptr<model::Gpt2Model> model_;
  base::TokenMask drawable_;
  base::ThreadTeam team_{1};
  FairQueue queue_{100};
  std::deque<ActiveRequest> requests_;
  std::unique_ptr<kvcache::SequenceManager> cache_;
  std::unique_ptr<Batch> batch_;
};

TEST_F(BatchTest, APromptInPiecesThenTokens) {
  Make({.prefill_chunk = 8});
  Add(20);
  for (const auto& [begin, end, complete] : std::vector<std::tuple<std::size_t, std::size_t, bool>>{
           {0, 8, false}, {8, 16, false}, {16, 20, true}, {20, 21, true}}) {
    const std::vector<StepShare> shares = Step();
    ASSERT_EQ(shares.size(), 1u);
    EXPECT_EQ(shares[0].begin, begin);
    EXPECT_EQ(shares[0].end, end);
    EXPECT_EQ(shares[0].complete, complete);
    EXPECT_EQ(shares[0].rows, complete ? 1u : 0u);
    EXPECT_EQ(shares[0].sequence->decoding, complete);
  }
}

TEST_F(BatchTest, TheLatestGivesWayAndTheFirstGoesOn) {
  Make({.kv_budget_bytes = 3 * kBlockBytes});
  ActiveRequest& first = Add(30, 0, 1);
  ActiveRequest& second = Add(20, 0, 2);
  EXPECT_TRUE(batch_->HasRoomFor(48));
  EXPECT_FALSE(batch_->HasRoomFor(49));
  std::vector<StepShare> shares = Step();
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].sequence->owner, &first);
  EXPECT_EQ(batch_->preempted(), 1u);
  EXPECT_EQ(batch_->preemptions(), 1u);
  EXPECT_FALSE(batch_->ResumeWaiting());
  EXPECT_EQ(batch_->Of(second).size(), 1u);
  EXPECT_EQ(batch_->Sequences().size(), 1u);
  batch_->Drop(first);
  EXPECT_TRUE(batch_->empty());
  EXPECT_TRUE(batch_->ResumeWaiting());
  shares = Step();
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].sequence->owner, &second);
  EXPECT_EQ(shares[0].end, 20u);
  batch_->Drop(second);
  EXPECT_EQ(cache_->report().running, 0u);
}

// The second waits while the first computes what both need, then goes on where they part.
TEST_F(BatchTest, ASequenceWaitsForWhatAnotherComputes) {
  Make({});
  Add(30, 13, 1);
  Add(25, 13, 2);
  EXPECT_EQ(Step().size(), 1u);
  const std::vector<StepShare> shares = Step();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[1].begin, 13u);
  EXPECT_EQ(shares[1].end, 25u);
  EXPECT_EQ(shares[1].cached, 13u);
  // Too little to wait for.
  Add(25, 7, 3);
  Add(25, 7, 3).tenant_salt = 1;
  EXPECT_EQ(Step().size(), 4u);
}

TEST_F(BatchTest, StepsWithSomebodyDecodingAreShorter) {
  Make({.step_tokens = 50}, /*busy_step_tokens=*/10);
  Add(5, 0, 1);
  Step();
  Add(60, 0, 2);
  const std::vector<StepShare> shares = Step();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].end - shares[0].begin, 1u);
  EXPECT_EQ(shares[1].end - shares[1].begin, 9u);
}

TEST_F(BatchTest, SlotsAreBoundedByTheStepsTokens) {
  Make({.max_batch = 8, .step_tokens = 2});
  Add(5, 0, 1);
  EXPECT_TRUE(batch_->HasSlot());
  Add(5, 0, 2);
  EXPECT_FALSE(batch_->HasSlot());
}

}  // namespace
}  // namespace kvasir::engine
