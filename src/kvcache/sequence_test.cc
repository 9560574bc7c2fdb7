#include "kvcache/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvcache/cache_oracle.h"
#include "kvcache/limited_memory.h"

namespace kvasir::kvcache {
namespace {

static_assert(!std::is_copy_constructible_v<CachedSequence>);
static_assert(!std::is_copy_assignable_v<CachedSequence>);
static_assert(std::is_nothrow_move_constructible_v<CachedSequence>);
static_assert(std::is_nothrow_move_assignable_v<CachedSequence>);

CacheGeometry Shape() {
  return CacheGeometry::Make({.layers = 2, .kv_heads = 2, .head_dim = 3}).value();
}
const std::uint64_t kBlockBytes = Shape().block_bytes();

// A pool of `blocks` blocks of 16 positions, and three empty sequences.
CacheOracle World(std::uint64_t blocks, BlockMemory* memory = nullptr) {
  return CacheOracle(Shape(), {.budget_bytes = blocks * kBlockBytes, .memory = memory}, 3);
}

TEST(CachedSequenceTest, AnEmptySequenceHoldsNothing) {
  CacheOracle world = World(1);
  const CachedSequence& sequence = world.sequence(0);
  EXPECT_EQ(sequence.length(), 0u);
  EXPECT_EQ(sequence.held_bytes(), 0u);
  EXPECT_EQ(sequence.shared_bytes(), 0u);
  EXPECT_EQ(sequence.waste_bytes(), 0u);
  EXPECT_TRUE(sequence.blocks().empty());
  EXPECT_EQ(world.pool().stats().storage_bytes(), 0u);
  sequence.CheckInvariants();
}

TEST(CachedSequenceTest, GrowsOneBlockAtATimeOnDemand) {
  CacheOracle world = World(10);
  for (std::size_t length = 1; length <= 70; ++length) {
    ASSERT_TRUE(world.Append(0, 1));
    ASSERT_EQ(world.pool().stats().storage_bytes(), (length + 15) / 16 * kBlockBytes);
    ASSERT_EQ(world.sequence(0).waste_bytes(),
              ((16 - length % 16) % 16) * Shape().bytes_per_token());
    world.Check();
  }
}

TEST(CachedSequenceTest, ViewDescribesTheLayer) {
  CacheOracle world = World(4);
  ASSERT_TRUE(world.Append(0, 40));
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const kernels::KvView view = world.sequence(0).View(layer);
    EXPECT_EQ(view.k_offset, Shape().k_offset(layer));
    EXPECT_EQ(view.v_offset, Shape().v_offset(layer));
    EXPECT_EQ(view.block_tokens, 16u);
    EXPECT_EQ(view.kv_heads, 2u);
    EXPECT_EQ(view.head_dim, 3u);
    for (std::size_t b = 0; b < 3; ++b) {
      EXPECT_EQ(view.blocks[b], world.pool().data(world.sequence(0).blocks()[b]));
    }
  }
}

TEST(CachedSequenceTest, ReservingAgainTakesNothingMore) {
  CacheOracle world = World(4);
  CachedSequence& sequence = world.sequence(0);
  ASSERT_TRUE(sequence.Reserve(20).has_value());
  const std::byte* const first = sequence.View(0).blocks[0];
  ASSERT_TRUE(sequence.Reserve(20).has_value());
  ASSERT_TRUE(sequence.Reserve(5).has_value());
  EXPECT_EQ(sequence.held_bytes(), 2 * kBlockBytes);
  EXPECT_EQ(sequence.waste_bytes(), 2 * kBlockBytes);
  EXPECT_EQ(sequence.View(0).blocks[0], first);
  sequence.Advance(3);  // A reservation may be used in parts.
  sequence.Advance(17);
  EXPECT_EQ(sequence.length(), 20u);
  sequence.CheckInvariants();
}

TEST(CachedSequenceTest, AFailedStepLeavesTheSequenceAsItWas) {
  CacheOracle world = World(4);
  ASSERT_TRUE(world.Append(0, 10));
  ASSERT_TRUE(world.FailedStep(0, 30));
  world.Check();
  EXPECT_EQ(world.length(0), 10u);
  world.Truncate(0, 10);  // Gives the reserved blocks back.
  EXPECT_EQ(world.sequence(0).held_bytes(), kBlockBytes);
  ASSERT_TRUE(world.Append(0, 30));
  world.Check();
}

TEST(CachedSequenceTest, ForkSharesEverythingAndCostsNothing) {
  CacheOracle world = World(3);
  ASSERT_TRUE(world.Append(0, 40));  // The whole budget.
  world.Fork(0, 1);
  world.Fork(1, 2);
  world.Check();
  EXPECT_EQ(world.pool().stats().live_blocks, 3u);
  EXPECT_EQ(world.pool().stats().saved_bytes(), 6 * kBlockBytes);
  EXPECT_EQ(world.sequence(2).shared_bytes(), 3 * kBlockBytes);
}

TEST(CachedSequenceTest, OnlyThePartlyFilledBlockIsCopiedOnWrite) {
  CacheOracle world = World(10);
  ASSERT_TRUE(world.Append(0, 40));
  world.Fork(0, 1);
  const std::vector<BlockId> before(world.sequence(0).blocks().begin(),
                                    world.sequence(0).blocks().end());
  ASSERT_TRUE(world.Append(1, 1));
  world.Check();
  EXPECT_EQ(world.sequence(1).blocks()[0], before[0]);
  EXPECT_EQ(world.sequence(1).blocks()[1], before[1]);
  EXPECT_NE(world.sequence(1).blocks()[2], before[2]);
  EXPECT_EQ(world.sequence(0).blocks()[2], before[2]);
  ASSERT_TRUE(world.Append(0, 1));  // The other one is alone now: no second copy.
  world.Check();
  EXPECT_EQ(world.sequence(0).blocks()[2], before[2]);
  EXPECT_EQ(world.pool().stats().live_blocks, 4u);
}

TEST(CachedSequenceTest, AForkAtABlockBoundaryNeverCopies) {
  CacheOracle world = World(10);
  ASSERT_TRUE(world.Append(0, 32));
  world.Fork(0, 1);
  ASSERT_TRUE(world.Append(0, 1));
  ASSERT_TRUE(world.Append(1, 1));
  world.Check();
  EXPECT_EQ(world.pool().stats().live_blocks, 4u);
  EXPECT_EQ(world.pool().stats().shared_blocks, 2u);
}

TEST(CachedSequenceTest, ForkLeavesReservedBlocksBehindAndEndsTheReservation) {
  CacheOracle world = World(10);
  ASSERT_TRUE(world.Append(0, 10));
  ASSERT_TRUE(world.FailedStep(0, 30));  // Reserves, does not advance.
  world.Fork(0, 1);
  world.Check();
  EXPECT_EQ(world.sequence(0).held_bytes(), 3 * kBlockBytes);
  EXPECT_EQ(world.sequence(1).held_bytes(), kBlockBytes);
  ASSERT_TRUE(world.Append(0, 30));
  ASSERT_TRUE(world.Append(1, 30));
  world.Check();
}

// Truncating inside a shared full block makes it a partly filled one: growing must copy it.
TEST(CachedSequenceTest, ATruncatedForkDoesNotWriteIntoTheOriginal) {
  for (std::size_t length = 0; length <= 48; ++length) {
    CacheOracle world = World(10);
    ASSERT_TRUE(world.Append(0, 48));
    world.Fork(0, 1);
    world.Truncate(1, length);
    world.Check();
    ASSERT_TRUE(world.Append(1, 20));
    world.Check();
    ASSERT_TRUE(world.Append(0, 1));
    world.Check();
    ASSERT_EQ(world.length(1), length + 20);
  }
}

TEST(CachedSequenceTest, TruncateFreesWholeBlocks) {
  CacheOracle world = World(10);
  for (std::size_t length = 0; length <= 50; ++length) {
    ASSERT_TRUE(world.Append(0, 50));
    world.Truncate(0, length);
    world.Check();
    ASSERT_EQ(world.pool().stats().live_blocks, (length + 15) / 16);
    world.Reset(0);
  }
}

// Case C47: one conversation that filled the budget must not spoil the next.
// Case C57: and none runs past what there is.
TEST(CachedSequenceTest, AFullBudgetRefusesThenServesTheNext) {
  CacheOracle world = World(2);
  ASSERT_TRUE(world.Append(0, 15));
  ASSERT_TRUE(world.Append(0, 17));
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{1000}, std::numeric_limits<std::size_t>::max()}) {
    const base::Result<void> refused = world.sequence(0).Reserve(count);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
    EXPECT_THAT(refused.error().message,
                testing::HasSubstr(std::to_string(2 * kBlockBytes) + " bytes"));
    world.Check();
  }
  EXPECT_FALSE(world.Append(1, 1));
  world.Destroy(0);
  EXPECT_TRUE(world.Append(1, 32));
  world.Check();
  world.Reset(1);
  EXPECT_TRUE(world.Append(0, 32));
  world.Check();
}

TEST(CachedSequenceTest, ACountFarBeyondTheBudgetTouchesNoMemory) {
  LimitedMemory memory;
  CacheOracle world(Shape(), {.budget_bytes = std::uint64_t{1} << 40, .memory = &memory}, 1);
  EXPECT_FALSE(world.sequence(0).Reserve(std::size_t{1} << 60).has_value());
  EXPECT_FALSE(world.sequence(0).Reserve(std::numeric_limits<std::size_t>::max()).has_value());
  EXPECT_EQ(memory.lent_bytes(), 0u);
}

// What a sequence shows to the outside.
struct Snapshot {
  std::size_t length;
  std::vector<BlockId> blocks;
  std::vector<std::byte*> addresses;
  std::uint64_t live_blocks;
  std::uint64_t references;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};
Snapshot Take(CacheOracle& world, std::size_t index) {
  const CachedSequence& sequence = world.sequence(index);
  const kernels::KvView view = sequence.View(1);
  const std::size_t held = sequence.blocks().size();
  return {.length = sequence.length(),
          .blocks = {sequence.blocks().begin(), sequence.blocks().end()},
          .addresses = {view.blocks, view.blocks + held},
          .live_blocks = world.pool().stats().live_blocks,
          .references = world.pool().stats().references};
}

// The n-th block a Reserve asks for is refused, by the budget or by the machine, with the partly
// filled block shared or not: everything stays as it was, and it works once there is room.
TEST(CachedSequenceTest, ExhaustionAtEveryPointChangesNothing) {
  for (const bool shared : {false, true}) {
    const std::uint64_t wanted = shared ? 5 : 4;  // 20 + 70 positions: blocks 2 … 5, and a copy.
    const std::uint64_t held = 2;
    for (std::uint64_t granted = 0; granted < wanted; ++granted) {
      for (const bool by_budget : {false, true}) {
        SCOPED_TRACE(testing::Message() << shared << " " << granted << " " << by_budget);
        LimitedMemory memory;
        CacheOracle world = World(by_budget ? held + granted : 100, &memory);
        ASSERT_TRUE(world.Append(0, 20));
        if (shared) world.Fork(0, 1);
        if (!by_budget) memory.AllowBlocks(granted);
        const Snapshot before = Take(world, 0);
        const base::Result<void> refused = world.sequence(0).Reserve(70);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
        EXPECT_EQ(Take(world, 0), before);
        world.Check();
        if (by_budget) {  // Known beforehand: not even a block was tried.
          EXPECT_EQ(memory.lent_bytes(), held * kBlockBytes);
          EXPECT_THAT(refused.error().message,
                      testing::EndsWith(std::to_string(wanted * kBlockBytes) + " more are needed"));
          continue;
        }
        memory.AllowBlocks(wanted - granted);  // What was granted is free in the pool.
        ASSERT_TRUE(world.Append(0, 70));
        world.Check();
      }
    }
  }
}

// Case C39: cancelled in the middle of a prefill, at lengths around block multiples.
TEST(CachedSequenceTest, DestroyingMidPrefillReturnsEveryBlock) {
  for (const std::size_t length : {1u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    for (const std::size_t next : {1u, 15u, 16u, 17u}) {
      CacheOracle world = World(10);
      ASSERT_TRUE(world.Append(0, length));
      world.Fork(0, 1);
      ASSERT_TRUE(world.FailedStep(0, next));
      world.Destroy(0);
      world.Check();
      world.Destroy(1);
      EXPECT_EQ(world.pool().stats().live_blocks, 0u);
      EXPECT_EQ(world.pool().stats().references, 0u);
      world.pool().CheckInvariants();
    }
  }
}

TEST(CachedSequenceTest, MovingTakesEverythingAndLeavesAnEmptySequence) {
  CacheOracle world = World(10);
  ASSERT_TRUE(world.Append(0, 20));
  ASSERT_TRUE(world.Append(1, 5));
  const Snapshot before = Take(world, 0);
  CachedSequence moved = std::move(world.sequence(0));
  EXPECT_EQ(moved.length(), 20u);
  EXPECT_EQ(moved.View(1).blocks[1], before.addresses[1]);
  EXPECT_EQ(world.sequence(0).length(), 0u);  // NOLINT(bugprone-use-after-move): promised.
  EXPECT_EQ(world.sequence(0).held_bytes(), 0u);
  world.sequence(0).CheckInvariants();

  world.sequence(1) = std::move(moved);  // Releases what it held.
  EXPECT_EQ(world.pool().stats().live_blocks, 2u);
  CachedSequence& self = world.sequence(1);
  world.sequence(1) = std::move(self);
  EXPECT_EQ(world.sequence(1).length(), 20u);
  world.sequence(1).CheckInvariants();
  ASSERT_TRUE(world.sequence(0).Reserve(1).has_value());
}

// The table of docs/kvcache/structure.md, on the lesson's model.
TEST(CachedSequenceTest, BytesAddUpAsTheDocumentationSays) {
  const CacheGeometry lesson =
      CacheGeometry::Make({.layers = 4, .kv_heads = 4, .head_dim = 32}).value();
  CacheOracle world(lesson, {.budget_bytes = std::uint64_t{1} << 20}, 2);
  ASSERT_TRUE(world.Append(0, 40));
  world.Fork(0, 1);
  ASSERT_TRUE(world.Append(1, 1));
  world.Check();
  const CachedSequence& a = world.sequence(0);
  const CachedSequence& b = world.sequence(1);
  EXPECT_EQ(a.held_bytes(), 196'608u);
  EXPECT_EQ(b.held_bytes(), 196'608u);
  EXPECT_EQ(a.held_bytes(3), 49'152u);
  EXPECT_EQ(a.shared_bytes(), 131'072u);
  EXPECT_EQ(b.shared_bytes(), 131'072u);
  EXPECT_EQ(a.waste_bytes(), 32'768u);
  EXPECT_EQ(b.waste_bytes(), 28'672u);
  const BlockPoolStats stats = world.pool().stats();
  EXPECT_EQ(stats.live_bytes, 262'144u);
  EXPECT_EQ(stats.saved_bytes(), 131'072u);
  EXPECT_EQ(stats.storage_bytes(), 262'144u);
}

// Keeps what it is told, and nothing more.
class Keeper : public BlockKeeper {
 public:
  explicit Keeper(BlockPool& pool) : pool_(pool) { pool.SetKeeper(this); }
  ~Keeper() override { pool_.SetKeeper(nullptr); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  void OnIdle(BlockId id) override { idle_.push_back(id); }
  void OnLive(BlockId id) override { std::erase(idle_, id); }
  void GiveUpIdle() override {
    pool_.StopKeeping(idle_.back());
    idle_.pop_back();
  }
  void GiveUp(BlockId id) override { pool_.StopKeeping(id); }

 private:
  BlockPool& pool_;
  std::vector<BlockId> idle_;
};

TEST(CachedSequenceTest, ASharedBeginningIsCopiedWhereItEndsInsideABlock) {
  CacheOracle world = World(5);
  ASSERT_TRUE(world.Append(0, 40));
  const std::vector<BlockId> blocks(world.sequence(0).blocks().begin(),
                                    world.sequence(0).blocks().end());
  CachedSequence shared(world.pool());
  shared.Share({{{blocks.begin(), blocks.end()}}}, 35);
  EXPECT_EQ(shared.length(), 35u);
  EXPECT_EQ(shared.shared_bytes(), 3 * kBlockBytes);
  EXPECT_EQ(world.pool().stats().live_blocks, 3u);
  shared.CheckInvariants();
  ASSERT_TRUE(shared.Reserve(1));
  EXPECT_EQ(world.pool().stats().live_blocks, 4u);
  EXPECT_EQ(shared.blocks()[1], blocks[1]);
  EXPECT_NE(shared.blocks()[2], blocks[2]);
  shared.CheckInvariants();
  world.sequence(0).CheckInvariants();
}

TEST(CachedSequenceTest, AKeptBlockIsCopiedOrWithoutRoomGivenUp) {
  for (const std::uint64_t budget : {2u, 3u}) {
    CacheOracle world = World(budget);
    const Keeper keeper(world.pool());
    ASSERT_TRUE(world.Append(0, 32));
    CachedSequence& sequence = world.sequence(0);
    const BlockId last = sequence.blocks()[1];
    world.pool().Keep(last);
    sequence.Truncate(20);
    sequence.CheckInvariants();
    ASSERT_TRUE(sequence.Reserve(3));
    EXPECT_EQ(sequence.blocks()[1] == last, budget == 2);
    EXPECT_TRUE(world.pool().IsWritable(sequence.blocks()[1]));
    EXPECT_EQ(world.pool().stats().idle_blocks, budget == 2 ? 0u : 1u);
    sequence.Advance(3);
    sequence.CheckInvariants();
    if (budget == 3) world.pool().StopKeeping(last);
  }
}

TEST(CachedSequenceTest, WithoutRoomForWhatIsMissingNothingIsGivenUp) {
  CacheOracle world = World(2);
  const Keeper keeper(world.pool());
  ASSERT_TRUE(world.Append(0, 32));
  CachedSequence& sequence = world.sequence(0);
  const BlockId last = sequence.blocks()[1];
  world.pool().Keep(last);
  sequence.Truncate(20);
  EXPECT_FALSE(sequence.Reserve(13));
  EXPECT_TRUE(world.pool().kept(last));
  world.pool().StopKeeping(last);
}

TEST(CachedSequenceTest, AnEqualBlockTakesTheOthersPlace) {
  CacheOracle world = World(4);
  ASSERT_TRUE(world.Append(0, 20));
  ASSERT_TRUE(world.Append(1, 20));
  const BlockId twin = world.sequence(1).blocks()[0];
  world.sequence(0).ReplaceBlock(CacheGroupId(0), 0, twin);
  EXPECT_EQ(world.sequence(0).blocks()[0], twin);
  EXPECT_EQ(world.sequence(0).View(0).blocks[0], world.pool().data(twin));
  EXPECT_EQ(world.pool().stats().live_blocks, 3u);
  EXPECT_EQ(world.pool().references(twin), 2u);
  world.sequence(0).CheckInvariants();
}

TEST(CachedSequenceTest, ReservingNothingDoesNothing) {
  CacheOracle world = World(4);
  ASSERT_TRUE(world.Append(0, 5));
  world.Fork(0, 1);
  ASSERT_TRUE(world.sequence(1).Reserve(0).has_value());
  world.sequence(1).Advance(0);
  EXPECT_EQ(world.pool().stats().live_blocks, 1u);
  world.Check();
}

TEST(CachedSequenceDeathTest, ProgrammersErrors) {
  CacheOracle world = World(4);
  ASSERT_TRUE(world.Append(0, 20));
  EXPECT_DEATH(world.sequence(0).Advance(13), "count <= slots");
  EXPECT_DEATH(world.sequence(0).Truncate(21), "new_length <= length_");
  EXPECT_DEATH(world.sequence(0).View(2), "layer < layers_");
  EXPECT_DEATH(world.sequence(0).held_bytes(2), "layer < layers_");
  const BlockId block = world.sequence(0).blocks()[0];
  const std::vector<std::vector<std::optional<BlockId>>> blocks = {{block}};
  EXPECT_DEATH(world.sequence(0).Share(blocks, 16), "entries_ == 0");
  EXPECT_DEATH(world.sequence(1).Share(blocks, 17), "BlocksFor.length.");
  EXPECT_DEATH(world.sequence(0).ReplaceBlock(CacheGroupId(0), 1, block), "<= length_");
  world.Fork(0, 1);
  EXPECT_DEATH(world.sequence(0).Advance(1), "NextSlotIsReadOnly");
}

}  // namespace
}  // namespace kvasir::kvcache
