#include "model/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "model/gpt2_model.h"
#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

class ReplayTest : public testing::Test {
 protected:
  void Use(const char* spec) {
    const auto policy = kvcache::CachePolicy::Parse(spec, model_->shape().Policy()).value();
    const auto geometry = kvcache::CacheGeometry::Make(model_->shape().Cache(16, policy)).value();
    pool_ = kvcache::BlockPool::Make(geometry, {.budget_bytes = 1 << 20}).value();
    sequence_.emplace(*pool_);
    ASSERT_TRUE(sequence_->Reserve(20));
    sequence_->Advance(20);
  }
  ~ReplayTest() override { sequence_.reset(); }

  const std::unique_ptr<Gpt2Model> model_ =
      Gpt2Model::Make(TestConfig(), RandomSource(0.3f)).value();
  std::unique_ptr<kvcache::BlockPool> pool_;
  std::optional<kvcache::CachedSequence> sequence_;
  const std::vector<TokenId> history_ = std::vector<TokenId>(20, 5);
  const std::vector<TokenId> fresh_ = {7, 8, 9};
};

TEST_F(ReplayTest, EveryPositionIsNewAndTheNewRowsGoOn) {
  Use("0:store=none;1:dtype=int8");
  sequence_->ExtendHistory(history_);
  const BatchItem item = {&*sequence_, fresh_, 1};
  const auto replay = Replay::Make({&item, 1}, model_->shape());
  ASSERT_TRUE(replay);
  ASSERT_EQ(replay.value().items().size(), 1u);
  const BatchItem& lower = replay.value().items()[0];
  EXPECT_EQ(lower.tokens.size(), 23u);
  EXPECT_TRUE(std::ranges::equal(lower.tokens.first(20), history_));
  EXPECT_TRUE(std::ranges::equal(lower.tokens.subspan(20), fresh_));
  EXPECT_EQ(lower.logit_rows, 3u);
  EXPECT_EQ(lower.sequence->length(), 0u);
  EXPECT_EQ(lower.sequence->geometry().layers(), 1u);
}

TEST_F(ReplayTest, OfAllLayersTheWantedRowsGoOn) {
  Use("store=none");
  sequence_->ExtendHistory(history_);
  const BatchItem item = {&*sequence_, fresh_, 1};
  const auto replay = Replay::Make({&item, 1}, model_->shape());
  ASSERT_TRUE(replay);
  EXPECT_EQ(replay.value().items()[0].logit_rows, 1u);
}

TEST_F(ReplayTest, ASequenceMustKnowItsTokens) {
  Use("0:store=none");
  const BatchItem item = {&*sequence_, fresh_, 1};
  const auto refused = Replay::Make({&item, 1}, model_->shape());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  sequence_->ExtendHistory(history_);
  EXPECT_EQ(sequence_->Truncate(3), 3u);
  EXPECT_EQ(sequence_->history().size(), 3u);
  EXPECT_EQ(sequence_->Fork().history().size(), 3u);
}

}  // namespace
}  // namespace kvasir::model
