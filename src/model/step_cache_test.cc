#include "model/step_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "kernels/hadamard.h"

namespace kvasir::model {
namespace {

constexpr std::size_t kHeadDim = 8;

// One layer of 2 kv heads, each read by 2 query heads; rotary positions if asked for.
class StepCacheTest : public testing::Test {
 protected:
  void Use(const char* spec, bool rotary = false) {
    shape_.layers = 1;
    shape_.heads = 4;
    shape_.kv_heads = 2;
    shape_.head_dim = kHeadDim;
    shape_.embedding = 12;
    shape_.context = 100;
    shape_.rotary = rotary;
    const auto policy = kvcache::CachePolicy::Parse(spec, shape_.Policy()).value();
    const auto geometry = kvcache::CacheGeometry::Make(shape_.Cache(16, policy)).value();
    sequence_.reset();
    pool_ = kvcache::BlockPool::Make(geometry, {.budget_bytes = 1 << 20}).value();
    sequence_.emplace(*pool_);
    ASSERT_TRUE(sequence_->Reserve(tokens_.size()));
    item_ = {&*sequence_, tokens_, 1};
    rows_.emplace(std::span(&item_, 1));
    frequencies_.assign(rotary ? kHeadDim / 2 : 0, 0.5);
    cache_.emplace(*rows_, shape_, StepRotary{frequencies_}, scratch_, 0);
  }
  ~StepCacheTest() override { sequence_.reset(); }

  // Stores a row of ascending numbers; unturned keys are their negatives.
  void Store(std::size_t position) {
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] = static_cast<float>(i + 1);
    for (std::size_t i = 0; i < k_.size(); ++i) {
      k_[i] = static_cast<float>(10 * i + position);
      unturned_[i] = -k_[i];
      v_[i] = static_cast<float>(100 * i + position);
    }
    for (std::size_t i = 0; i < hidden_.size(); ++i) hidden_[i] = static_cast<float>(i + position);
    cache_->StoreRow(rows_->slices()[0], 0, position,
                     {q_.data(), k_.data(), v_.data(), unturned_.data(), hidden_.data()});
  }
  const kvcache::CachePart& Part(std::size_t index) const {
    return pool_->geometry().parts(0)[index];
  }
  std::vector<float> Key(std::size_t part, std::size_t position, std::size_t head) {
    std::vector<float> k(kHeadDim);
    std::vector<float> v(kHeadDim);
    kernels::LoadKv(sequence_->View(Part(part)), position, head, k.data(), v.data());
    return k;
  }

  ModelShape shape_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  std::optional<kvcache::CachedSequence> sequence_;
  const std::vector<TokenId> tokens_ = std::vector<TokenId>(40, 1);
  BatchItem item_;
  std::optional<StepRows> rows_;
  std::vector<double> frequencies_;
  Scratch scratch_;
  std::optional<StepCache> cache_;
  std::vector<float> q_ = std::vector<float>(4 * kHeadDim);
  std::vector<float> k_ = std::vector<float>(2 * kHeadDim);
  std::vector<float> unturned_ = std::vector<float>(2 * kHeadDim);
  std::vector<float> v_ = std::vector<float>(2 * kHeadDim);
  std::vector<float> hidden_ = std::vector<float>(12);
};

TEST_F(StepCacheTest, EachHeadGoesToItsPart) {
  Use("0.1:window=20");
  ASSERT_EQ(pool_->geometry().parts(0).size(), 2u);
  Store(5);
  EXPECT_EQ(Key(0, 5, 0)[3], 35.0f);
  EXPECT_EQ(Key(1, 5, 0)[3], 115.0f);  // The second head's fourth channel.
  EXPECT_FALSE(cache_->NeedsGroups());
}

TEST_F(StepCacheTest, RotationTurnsTheQueriesOfItsHeadsToo) {
  Use("0.1:rotate");
  Store(0);
  std::vector<float> rotated(kHeadDim);
  for (std::size_t d = 0; d < kHeadDim; ++d) rotated[d] = static_cast<float>(10 * (kHeadDim + d));
  kernels::HadamardRotate(rotated.data(), 1, kHeadDim);
  EXPECT_EQ(Key(1, 0, 0), rotated);
  EXPECT_EQ(q_[2 * kHeadDim - 1], 16.0f);  // Of the first kv head's queries.
  EXPECT_NE(q_[2 * kHeadDim], 17.0f);
}

TEST_F(StepCacheTest, SinksOfRotaryModelsAreStoredUnturned) {
  Use("window=20,sinks=3", /*rotary=*/true);
  Store(2);
  EXPECT_EQ(Key(0, 2, 0)[1], -12.0f);
  Store(3);
  EXPECT_EQ(Key(0, 3, 0)[1], 13.0f);
  Use("window=20,sinks=3");  // With learned positions like any other.
  Store(2);
  EXPECT_EQ(Key(0, 2, 0)[1], 12.0f);
}

TEST_F(StepCacheTest, HiddenValuesAreKeptInsteadOfKeys) {
  Use("store=hidden");
  Store(17);
  EXPECT_EQ(sequence_->HiddenRow(Part(0), 17)[4], 21.0f);
}

TEST_F(StepCacheTest, GroupsAreRoundedOnceTheyAreComplete) {
  Use("k=int4,group=16");
  EXPECT_TRUE(cache_->NeedsGroups());
  for (std::size_t p = 0; p < 40; ++p) Store(p);
  base::ThreadTeam team(2);
  team.Run([&](base::Member& member) { cache_->CompleteGroups(member, 0); });
  // Each channel goes from 10 i to 10 i + 15 within a group: steps of one, which are exact.
  EXPECT_EQ(Key(0, 9, 0)[2], 29.0f);
  EXPECT_EQ(Key(0, 31, 1)[0], 111.0f);
}

}  // namespace
}  // namespace kvasir::model
