#include "kvcache/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "kvcache/limited_memory.h"

namespace kvasir::kvcache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CacheGeometry SmallShape() {
  return CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 2}).value();
}
constexpr std::uint64_t kBlockBytes = 16 * 2 * 2 * 4;  // Of SmallShape.

std::unique_ptr<BlockPool> MakePool(std::uint64_t blocks, BlockPoolOptions options = {}) {
  options.budget_bytes = blocks * kBlockBytes;
  return BlockPool::Make(SmallShape(), options).value();
}

std::vector<BlockId> AllocateAll(BlockPool& pool) {
  std::vector<BlockId> ids;
  while (true) {
    const base::Result<BlockId> id = pool.Allocate();
    if (!id) return ids;
    ids.push_back(id.value());
  }
}

TEST(BlockPoolTest, BudgetBelowOneBlockIsRefusedWithBothNumbers) {
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{1}, kBlockBytes - 1}) {
    LimitedMemory memory;
    const auto pool = BlockPool::Make(SmallShape(), {.budget_bytes = budget, .memory = &memory});
    ASSERT_FALSE(pool.has_value());
    EXPECT_EQ(pool.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(pool.error().message, AllOf(HasSubstr("budget is " + std::to_string(budget)),
                                            HasSubstr(std::to_string(kBlockBytes))));
  }
}

TEST(BlockPoolTest, BudgetIsRoundedDownToBlocks) {
  const auto pool = BlockPool::Make(SmallShape(), {.budget_bytes = 3 * kBlockBytes - 1}).value();
  EXPECT_EQ(pool->stats().capacity_blocks, 2u);
}

TEST(BlockPoolTest, NothingIsReservedAheadWhateverTheBudget) {
  LimitedMemory memory;
  const auto pool =
      BlockPool::Make(SmallShape(), {.budget_bytes = std::numeric_limits<std::uint64_t>::max(),
                                     .memory = &memory})
          .value();
  EXPECT_EQ(memory.lent_bytes(), 0u);
  const BlockId id = pool->Allocate().value();
  EXPECT_EQ(memory.lent_bytes(), kBlockBytes);
  EXPECT_EQ(pool->stats().storage_bytes(), kBlockBytes);
  pool->Release(id);
}

TEST(BlockPoolTest, ExhaustionIsAnOrdinaryResultThatNamesTheNumbers) {
  const auto pool = MakePool(3);
  const std::vector<BlockId> ids = AllocateAll(*pool);
  ASSERT_EQ(ids.size(), 3u);
  const base::Result<BlockId> refused = pool->Allocate();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(refused.error().message,
            "the cache budget of 768 bytes has 0 left, but 256 more are needed");
  pool->CheckInvariants();
  EXPECT_EQ(pool->stats().live_blocks, 3u);

  pool->Release(ids[1]);
  EXPECT_TRUE(pool->CheckAvailable(kBlockBytes).has_value());
  EXPECT_FALSE(pool->CheckAvailable(2 * kBlockBytes).has_value());
  EXPECT_EQ(pool->Allocate().value(), ids[1]);
  for (const BlockId id : ids) pool->Release(id);
}

TEST(BlockPoolTest, FreedMemoryIsReusedLastFreedFirst) {
  LimitedMemory memory;
  const auto pool = MakePool(8, {.memory = &memory});
  const BlockId a = pool->Allocate().value();
  const BlockId b = pool->Allocate().value();
  std::byte* const data_a = pool->data(a);
  std::byte* const data_b = pool->data(b);
  pool->Release(b);
  pool->Release(a);
  EXPECT_EQ(pool->stats().free_blocks, 2u);
  EXPECT_EQ(pool->data(pool->Allocate().value()), data_a);
  EXPECT_EQ(pool->data(pool->Allocate().value()), data_b);
  EXPECT_EQ(memory.lent_bytes(), 2 * kBlockBytes);
  pool->Release(a);
  pool->Release(b);
}

TEST(BlockPoolTest, BlocksAreAlignedDistinctAndDoNotMove) {
  const auto pool = MakePool(50);
  const std::vector<BlockId> ids = AllocateAll(*pool);
  std::set<std::byte*> addresses;
  for (const BlockId id : ids) {
    std::byte* const data = pool->data(id);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    std::memset(data, static_cast<int>(id.index()), kBlockBytes);
    addresses.insert(data);
  }
  EXPECT_EQ(addresses.size(), 50u);
  for (const BlockId id : ids) {
    for (std::size_t i = 0; i < kBlockBytes; ++i) {
      ASSERT_EQ(pool->data(id)[i], static_cast<std::byte>(id.index()));
    }
    pool->Release(id);
  }
}

TEST(BlockPoolTest, ReferencesDecideWhenABlockIsFree) {
  const auto pool = MakePool(2);
  const BlockId id = pool->Allocate().value();
  EXPECT_EQ(pool->references(id), 1u);
  EXPECT_EQ(pool->stats().shared_blocks, 0u);
  pool->AddRef(id);
  pool->AddRef(id);
  EXPECT_EQ(pool->references(id), 3u);
  BlockPoolStats stats = pool->stats();
  EXPECT_EQ(stats.shared_blocks, 1u);
  EXPECT_EQ(stats.references, 3u);
  EXPECT_EQ(stats.live_bytes, kBlockBytes);
  EXPECT_EQ(stats.referenced_bytes, 3 * kBlockBytes);
  EXPECT_EQ(stats.saved_bytes(), 2 * kBlockBytes);
  pool->CheckInvariants();
  pool->Release(id);
  pool->Release(id);
  EXPECT_EQ(pool->stats().shared_blocks, 0u);
  EXPECT_EQ(pool->stats().live_blocks, 1u);
  pool->Release(id);
  stats = pool->stats();
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.free_blocks, 1u);
  EXPECT_EQ(stats.peak_live_bytes, kBlockBytes);
  pool->CheckInvariants();
}

TEST(BlockPoolTest, AMachineWithoutMemoryIsAlsoExhausted) {
  LimitedMemory memory;
  memory.AllowBlocks(2);
  const auto pool = MakePool(5, {.memory = &memory});
  const std::vector<BlockId> ids = AllocateAll(*pool);
  EXPECT_EQ(ids.size(), 2u);
  const base::Result<BlockId> refused = pool->Allocate();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("no memory"), HasSubstr("256 bytes")));
  pool->CheckInvariants();
  memory.AllowBlocks(1);
  pool->Release(pool->Allocate().value());
  for (const BlockId id : ids) pool->Release(id);
}

TEST(BlockPoolTest, GivesAllMemoryBack) {
  LimitedMemory memory;
  {
    const auto pool = MakePool(4, {.memory = &memory});
    for (const BlockId id : AllocateAll(*pool)) pool->Release(id);
    EXPECT_EQ(memory.lent_bytes(), 4 * kBlockBytes);
  }
  EXPECT_EQ(memory.lent_bytes(), 0u);
}

std::vector<std::uint32_t> Order(std::optional<std::uint64_t> seed) {
  const auto pool = MakePool(40, {.placement_seed = seed});
  std::vector<std::uint32_t> order;
  for (const BlockId id : AllocateAll(*pool)) {
    order.push_back(id.index());
    pool->CheckInvariants();
  }
  for (const std::uint32_t index : order) pool->Release(BlockId(index));
  return order;
}

TEST(BlockPoolTest, PlacementSeedPermutesTheBlocksReproducibly) {
  std::vector<std::uint32_t> ascending(40);
  for (std::uint32_t i = 0; i < 40; ++i) ascending[i] = i;
  EXPECT_EQ(Order(std::nullopt), ascending);
  EXPECT_NE(Order(1), ascending);
  EXPECT_EQ(Order(1), Order(1));
  EXPECT_NE(Order(1), Order(2));
  std::vector<std::uint32_t> sorted = Order(3);
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, ascending);  // The whole budget, each block once.
}

TEST(BlockPoolTest, PlacementSeedKeepsTheBudgetAndFillsBlocksWithNan) {
  LimitedMemory memory;
  const auto pool = MakePool(3, {.placement_seed = 7, .memory = &memory});
  for (int round = 0; round < 2; ++round) {  // Fresh blocks, then reused ones.
    const std::vector<BlockId> ids = AllocateAll(*pool);
    ASSERT_EQ(ids.size(), 3u);
    EXPECT_LE(memory.lent_bytes(), 3 * kBlockBytes);
    for (const BlockId id : ids) {
      for (std::size_t i = 0; i < kBlockBytes; i += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, pool->data(id) + i, sizeof(value));
        ASSERT_TRUE(std::isnan(value));
      }
      std::memset(pool->data(id), 0, kBlockBytes);
      pool->Release(id);
    }
  }
}

// Random operations against a map from block to its number of references.
TEST(BlockPoolTest, AgreesWithAMapOfCounts) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const std::optional<std::uint64_t> placement_seed =
        seed % 2 == 0 ? std::optional<std::uint64_t>(seed) : std::nullopt;
    const auto pool = MakePool(20, {.placement_seed = placement_seed});
    std::unordered_map<BlockId, std::uint32_t> counts;
    std::vector<BlockId> held;  // One entry a reference.
    std::uint64_t peak = 0;
    for (int step = 0; step < 4000; ++step) {
      const std::uint32_t kind = random() % 3;
      if (kind == 0) {
        const base::Result<BlockId> id = pool->Allocate();
        ASSERT_EQ(id.has_value(), counts.size() < 20);
        if (!id) continue;
        ASSERT_TRUE(counts.emplace(id.value(), 1).second) << "handed out twice";
        held.push_back(id.value());
      } else if (!held.empty()) {
        const std::size_t pick = random() % held.size();
        const BlockId id = held[pick];
        if (kind == 1 && held.size() < 60) {
          pool->AddRef(id);
          ++counts[id];
          held.push_back(id);
        } else {
          pool->Release(id);
          if (--counts[id] == 0) counts.erase(id);
          held[pick] = held.back();
          held.pop_back();
        }
      }
      peak = std::max<std::uint64_t>(peak, counts.size());
      pool->CheckInvariants();
      const BlockPoolStats stats = pool->stats();
      ASSERT_EQ(stats.live_blocks, counts.size());
      ASSERT_EQ(stats.references, held.size());
      ASSERT_EQ(stats.peak_live_bytes, peak * kBlockBytes);
      ASSERT_EQ(stats.shared_blocks, static_cast<std::uint64_t>(std::ranges::count_if(
                                         counts, [](const auto& c) { return c.second > 1; })));
      for (const auto& [id, count] : counts) ASSERT_EQ(pool->references(id), count);
    }
    for (const BlockId id : held) pool->Release(id);
    EXPECT_EQ(pool->stats().live_blocks, 0u);
  }
}

// Gives up the block that has been idle longest, and writes down what it is told.
class OldestFirst : public BlockKeeper {
 public:
  explicit OldestFirst(BlockPool& pool) : pool_(pool) { pool.SetKeeper(this); }
  ~OldestFirst() override { pool_.SetKeeper(nullptr); }
  OldestFirst(const OldestFirst&) = delete;
  OldestFirst& operator=(const OldestFirst&) = delete;
  const std::vector<BlockId>& idle() const { return idle_; }

  void OnIdle(BlockId id) override { idle_.push_back(id); }
  void OnLive(BlockId id) override { std::erase(idle_, id); }
  void GiveUpIdle() override {
    const BlockId id = idle_.front();
    idle_.erase(idle_.begin());
    pool_.StopKeeping(id);
  }
  void GiveUp(BlockId id) override { pool_.StopKeeping(id); }

 private:
  BlockPool& pool_;
  std::vector<BlockId> idle_;
};

TEST(BlockPoolTest, AKeptBlockStaysUntilItsStorageIsNeeded) {
  const auto pool = MakePool(3);
  OldestFirst keeper(*pool);
  const std::vector<BlockId> ids = AllocateAll(*pool);
  std::memset(pool->data(ids[0]), 7, kBlockBytes);
  pool->Keep(ids[0]);
  pool->Keep(ids[1]);
  EXPECT_TRUE(pool->kept(ids[0]));
  EXPECT_FALSE(pool->kept(ids[2]));
  for (const BlockId id : {ids[1], ids[0], ids[2]}) pool->Release(id);
  EXPECT_THAT(keeper.idle(), testing::ElementsAre(ids[1], ids[0]));
  BlockPoolStats stats = pool->stats();
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.idle_blocks, 2u);
  EXPECT_EQ(stats.idle_bytes, 2 * kBlockBytes);
  EXPECT_EQ(stats.free_blocks, 1u);
  EXPECT_EQ(stats.storage_bytes(), 3 * kBlockBytes);
  EXPECT_TRUE(pool->CheckAvailable(3 * kBlockBytes));  // Idle ones count.
  pool->CheckInvariants();

  pool->AddRef(ids[0]);  // Found again.
  EXPECT_THAT(keeper.idle(), testing::ElementsAre(ids[1]));
  EXPECT_EQ(pool->data(ids[0])[5], std::byte{7});
  EXPECT_EQ(pool->Allocate().value(), ids[2]);  // The free one first,
  EXPECT_EQ(pool->Allocate().value(), ids[1]);  // then the idle one.
  EXPECT_FALSE(pool->Allocate());
  pool->CheckInvariants();
  pool->Release(ids[0]);
  EXPECT_EQ(pool->stats().idle_blocks, 1u);
  pool->StopKeeping(ids[0]);
  EXPECT_EQ(pool->stats().idle_blocks, 0u);
  EXPECT_EQ(pool->stats().free_blocks, 1u);
  pool->CheckInvariants();
  pool->Release(ids[1]);
  pool->Release(ids[2]);
}

TEST(BlockPoolTest, StorageGrowsBeforeAnythingCachedIsGivenUp) {
  const auto pool = MakePool(2);
  OldestFirst keeper(*pool);
  const BlockId first = pool->Allocate().value();
  pool->Keep(first);
  pool->Release(first);
  const BlockId second = pool->Allocate().value();
  EXPECT_NE(second, first);
  EXPECT_EQ(keeper.idle().size(), 1u);
  pool->Release(second);
  pool->StopKeeping(first);
}

TEST(BlockPoolTest, WithoutMemoryIdleBlocksAreUsed) {
  LimitedMemory memory;
  const auto pool = MakePool(5, {.memory = &memory});
  OldestFirst keeper(*pool);
  const BlockId kept = pool->Allocate().value();
  pool->Keep(kept);
  pool->Release(kept);
  memory.AllowBlocks(0);
  EXPECT_EQ(pool->Allocate().value(), kept);
  EXPECT_FALSE(pool->Allocate());
  pool->Release(kept);
}

TEST(BlockPoolTest, OnlyASoleAndUnkeptBlockIsWritable) {
  const auto pool = MakePool(2);
  OldestFirst keeper(*pool);
  const BlockId id = pool->Allocate().value();
  EXPECT_TRUE(pool->IsWritable(id));
  pool->AddRef(id);
  EXPECT_FALSE(pool->IsWritable(id));
  pool->Release(id);
  pool->Keep(id);
  EXPECT_FALSE(pool->IsWritable(id));
  pool->MakeWritable(id);
  EXPECT_TRUE(pool->IsWritable(id));
  pool->Release(id);
  EXPECT_EQ(pool->stats().free_blocks, 1u);
}

TEST(BlockPoolDeathTest, KeepersAreHeldToTheirWord) {
  const auto pool = MakePool(2);
  const BlockId id = pool->Allocate().value();
  EXPECT_DEATH(pool->Keep(id), "keeper_ != nullptr");
  {
    OldestFirst keeper(*pool);
    EXPECT_DEATH(pool->SetKeeper(&keeper), "keeper_ == nullptr");
    EXPECT_DEATH(pool->StopKeeping(id), "kept");
    EXPECT_DEATH(pool->MakeWritable(id), "kept");
    pool->Keep(id);
    EXPECT_DEATH(pool->Keep(id), "!block.kept");
    pool->StopKeeping(id);
  }
  pool->Release(id);
}

TEST(BlockPoolDeathTest, ProgrammersErrors) {
  const auto pool = MakePool(2);
  const BlockId id = pool->Allocate().value();
  pool->Release(id);
  EXPECT_DEATH(pool->Release(id), "references > 0");
  EXPECT_DEATH(pool->AddRef(id), "references > 0");
  EXPECT_DEATH(pool->data(id), "references > 0");
  EXPECT_DEATH(pool->references(BlockId(9)), "references > 0");
}

TEST(BlockPoolDeathTest, APoolMustOutliveItsHolders) {
  EXPECT_DEATH(
      {
        const auto pool = MakePool(2);
        [[maybe_unused]] const base::Result<BlockId> leaked = pool->Allocate();
      },
      "references == 0");
}

#ifdef __SANITIZE_ADDRESS__
TEST(BlockPoolDeathTest, AddressSanitizerSeesTheUseOfAFreeBlock) {
  const auto pool = MakePool(2);
  const BlockId id = pool->Allocate().value();
  std::byte* const data = pool->data(id);
  data[5] = std::byte{1};
  pool->Release(id);
  EXPECT_DEATH(data[5] = std::byte{2}, "use-after-poison");
}
#endif

}  // namespace
}  // namespace kvasir::kvcache
