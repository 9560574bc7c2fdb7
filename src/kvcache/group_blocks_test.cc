// Blocks of several cache groups in one budget: who gets storage, what is given up first, what a
// sequence drops, keeps and brings back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/test_directory.h"
#include "kvcache/cache_test_peer.h"
#include "kvcache/limited_memory.h"

namespace kvasir::kvcache {
namespace {

using Peer = CacheTestPeer;
using Tokens = std::vector<TokenId>;

CacheGeometry Make(const std::string& spec, std::uint64_t layers, std::uint64_t block_tokens = 16) {
  const PolicyShape shape = {.layers = layers, .kv_heads = 1, .head_dim = 2};
  return CacheGeometry::Make({.layers = layers,
                              .kv_heads = 1,
                              .head_dim = 2,
                              .block_tokens = block_tokens,
                              .policy = CachePolicy::Parse(spec, shape).value()})
      .value();
}
// Group 0: one layer with a window. Group 1: two full layers.
CacheGeometry Shape() { return Make("0:window=16", 3); }
constexpr std::uint64_t kSmall = 16 * 2 * 2 * 4;  // Bytes of a block of group 0.
constexpr std::uint64_t kLarge = 2 * kSmall;      // And of group 1.
constexpr CacheGroupId kWindow{0};
constexpr CacheGroupId kFull{1};

// `count` tokens of a text named by its number.
Tokens Text(TokenId number, std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = number * 1000 + static_cast<TokenId>(i);
  return tokens;
}

// ------------------------------------------------------------------ the pool

TEST(GroupPoolTest, StorageMovesBetweenGroupsWithinTheBudget) {
  LimitedMemory memory;
  const auto pool =
      BlockPool::Make(Shape(), {.budget_bytes = 6 * kLarge, .memory = &memory}).value();
  EXPECT_EQ(pool->stats().capacity_blocks, 4u);  // Of both groups at once.
  std::vector<BlockId> large;
  for (int i = 0; i < 6; ++i) large.push_back(pool->Allocate(kFull).value());
  EXPECT_FALSE(pool->Allocate(kWindow));
  for (const BlockId id : large) pool->Release(id);
  EXPECT_EQ(memory.lent_bytes(), 6 * kLarge);

  std::vector<BlockId> small = {pool->Allocate(kWindow).value()};
  EXPECT_EQ(memory.lent_bytes(), 5 * kLarge + kSmall);  // One large one went.
  EXPECT_LT(small[0].index(), 6u);                      // Its id stands for the new block.
  EXPECT_EQ(pool->group(small[0]), kWindow);
  pool->CheckInvariants();
  while (small.size() < 12) small.push_back(pool->Allocate(kWindow).value());
  EXPECT_FALSE(pool->Allocate(kWindow));
  EXPECT_EQ(memory.lent_bytes(), 12 * kSmall);
  EXPECT_EQ(Peer::blocks(*pool).size(), 12u);
  EXPECT_TRUE(Peer::vacant(*pool).empty());
  pool->CheckInvariants();

  for (const BlockId id : small) pool->Release(id);
  large = {pool->Allocate(kFull).value()};  // Takes the storage of two.
  EXPECT_EQ(memory.lent_bytes(), 10 * kSmall + kLarge);
  EXPECT_EQ(Peer::vacant(*pool).size(), 1u);
  pool->CheckInvariants();
  pool->Release(large[0]);
}

TEST(GroupPoolTest, ABudgetBelowOneBlockOfEachIsRefused) {
  EXPECT_FALSE(BlockPool::Make(Shape(), {.budget_bytes = kSmall + kLarge - 1}));
  EXPECT_TRUE(BlockPool::Make(Shape(), {.budget_bytes = kSmall + kLarge}));
}

// Gives up the block that has been idle longest.
class OldestFirst : public BlockKeeper {
 public:
  explicit OldestFirst(BlockPool& pool) : pool_(pool) { pool.SetKeeper(this); }
  ~OldestFirst() override {
    for (const BlockId id : idle_) pool_.StopKeeping(id);
    pool_.SetKeeper(nullptr);
  }
  OldestFirst(const OldestFirst&) = delete;
  OldestFirst& operator=(const OldestFirst&) = delete;
  void OnIdle(BlockId id) override { idle_.push_back(id); }
  void OnLive(BlockId id) override { std::erase(idle_, id); }
  void GiveUpIdle() override {
    const BlockId id = idle_.front();
    idle_.erase(idle_.begin());
    pool_.StopKeeping(id);
  }
  void GiveUp(BlockId id) override { pool_.StopKeeping(id); }
  const std::vector<BlockId>& idle() const { return idle_; }

 private:
  BlockPool& pool_;
  std::vector<BlockId> idle_;
};

// A block is refused exactly where live bytes leave no room, whatever is free or idle.
TEST(GroupPoolTest, RandomBlocksOfBothGroups) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    LimitedMemory memory;
    BlockPoolOptions options = {.budget_bytes = 10 * kLarge + 7, .memory = &memory};
    if (seed % 2 == 0) options.placement_seed = seed;
    const auto pool = BlockPool::Make(Shape(), options).value();
    const OldestFirst keeper(*pool);
    std::vector<BlockId> held;
    int refused = 0;
    for (int step = 0; step < 3000; ++step) {
      std::uint64_t live = 0;
      for (const BlockId id : held) live += pool->group(id) == kWindow ? kSmall : kLarge;
      ASSERT_EQ(pool->stats().live_bytes, live);
      ASSERT_EQ(memory.lent_bytes(), pool->stats().storage_bytes());
      if (random() % 2 == 0) {
        const CacheGroupId group(random() % 2);
        const std::uint64_t bytes = group == kWindow ? kSmall : kLarge;
        const base::Result<BlockId> id = pool->Allocate(group);
        ASSERT_EQ(id.has_value(), live + bytes <= options.budget_bytes);
        if (!id) {
          ++refused;
          continue;
        }
        ASSERT_EQ(pool->group(id.value()), group);
        held.push_back(id.value());
        if (random() % 3 == 0) pool->Keep(id.value());
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        pool->Release(held.back());
        held.pop_back();
      } else if (!keeper.idle().empty()) {
        held.push_back(keeper.idle()[random() % keeper.idle().size()]);
        pool->AddRef(held.back());
      }
      pool->CheckInvariants();
    }
    EXPECT_GT(refused, 10);
    for (const BlockId id : held) {
      if (pool->kept(id)) pool->StopKeeping(id);
      pool->Release(id);
    }
  }
}

// ------------------------------------------------------------------ the index

class GroupIndexTest : public testing::Test {
 protected:
  void Start(const CacheGeometry& geometry, std::uint64_t blocks,
             std::uint64_t max_idle_bytes = ~std::uint64_t{0}) {
    manager_ =
        SequenceManager::Make(geometry, {.pool = {.budget_bytes = blocks * geometry.block_bytes()},
                                         .index = {.max_idle_bytes = max_idle_bytes}})
            .value();
  }
  ~GroupIndexTest() override {
    for (const BlockId id : taken_) Peer::pool(*manager_).Release(id);
  }
  // By 16 tokens a step, so that blocks leave the window one after the other.
  SequenceId Grow(const Tokens& tokens) {
    const SequenceId id = manager_->Create();
    for (std::size_t at = 0; at < tokens.size(); at += 16) {
      const auto part =
          std::span(tokens).subspan(at, std::min<std::size_t>(16, tokens.size() - at));
      EXPECT_TRUE(manager_->cache(id).Reserve(part.size()));
      manager_->cache(id).Advance(part.size());
      manager_->Commit(id, part);
    }
    manager_->CheckInvariants();
    return id;
  }
  std::size_t Found(const Tokens& text) { return Peer::index(*manager_).Find(0, text).length; }
  // Makes the pool give up one idle block of the group or more, by taking storage for it.
  void TakeOne(CacheGroupId group) {
    taken_.push_back(Peer::pool(*manager_).Allocate(group).value());
    Peer::index(*manager_).CheckInvariants();
  }
  // Which blocks of the text's nodes are there: "wf" for both, "-f" without its window block.
  std::string Kept(const Tokens& text) {
    std::string kept;
    std::optional<PrefixNodeId> parent;
    for (std::size_t at = 0; at + 16 <= text.size(); at += 16) {
      std::optional<PrefixNodeId> next;
      const auto& nodes = Peer::nodes(Peer::index(*manager_));
      for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i] || nodes[i]->parent != parent) continue;
        if (std::equal(nodes[i]->tokens.begin(), nodes[i]->tokens.end(),
                       text.begin() + static_cast<std::ptrdiff_t>(at))) {
          next = PrefixNodeId(i);
        }
      }
      if (!next) break;
      const auto& blocks = Peer::node(Peer::index(*manager_), next->index()).blocks;
      kept += blocks[0] ? 'w' : '-';
      if (blocks.size() > 1) kept += blocks[1] ? 'f' : '-';
      kept += ' ';
      parent = next;
    }
    return kept;
  }

  std::unique_ptr<SequenceManager> manager_;
  std::vector<BlockId> taken_;
};

TEST_F(GroupIndexTest, BlocksThatLeftTheWindowGoFirstOldestFirst) {
  Start(Shape(), 4);
  manager_->Finish(Grow(Text(1, 64)));
  EXPECT_EQ(Kept(Text(1, 64)), "wf wf wf wf ");
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 64)), "-f wf wf wf ");
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 64)), "-f -f wf wf ");
  EXPECT_EQ(Found(Text(1, 64)), 64u);  // The text goes on without those.
  EXPECT_EQ(Found(Text(1, 60)), 60u);
  EXPECT_EQ(Found(Text(1, 48)), 48u);
  EXPECT_EQ(Found(Text(1, 47)), 47u);
  EXPECT_EQ(Found(Text(1, 46)), 0u);  // A query at 46 sees 31 … and one at 32 sees 17 …
  TakeOne(kWindow);
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 64)), "-f -f -f -f ");
  EXPECT_EQ(Found(Text(1, 64)), 0u);
  TakeOne(kWindow);  // Then leaves.
  EXPECT_EQ(Kept(Text(1, 64)), "-f -f -f ");
}

TEST_F(GroupIndexTest, ALeafUsedEarlierGoesBeforeALooseBlock) {
  Start(Shape(), 5);
  manager_->Finish(Grow(Text(1, 16)));
  manager_->Finish(Grow(Text(2, 64)));
  EXPECT_EQ(manager_->pool_stats().free_bytes, 0u);
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 16)), "-f ");
  EXPECT_EQ(Kept(Text(2, 64)), "wf wf wf wf ");
  TakeOne(kFull);
  EXPECT_EQ(Kept(Text(1, 16)), "");
  EXPECT_EQ(Kept(Text(2, 64)), "wf wf wf wf ");
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(2, 64)), "-f wf wf wf ");
}

TEST_F(GroupIndexTest, ABlockUsedAgainIsTheYoungest) {
  Start(Shape(), 8);
  manager_->Finish(Grow(Text(1, 32)));
  manager_->Finish(Grow(Text(2, 32)));
  const SequenceId again = manager_->Create();
  EXPECT_EQ(manager_->TakePrefix(again, Text(1, 32)), 32u);
  EXPECT_EQ(manager_->report(again).held_bytes, kSmall + 2 * kLarge);
  manager_->Finish(again);
  const std::uint64_t free = manager_->pool_stats().budget_bytes -
                             manager_->pool_stats().live_bytes - manager_->pool_stats().idle_bytes;
  for (std::uint64_t n = 0; n < free / kSmall; ++n) TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 32)) + Kept(Text(2, 32)), "wf wf wf wf ");
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 32)) + Kept(Text(2, 32)), "-f wf wf wf ");  // It was not used again.
  TakeOne(kWindow);
  TakeOne(kWindow);
  EXPECT_EQ(Kept(Text(1, 32)) + Kept(Text(2, 32)), "-f wf -f -f ");
}

// Where every group forgets, a running text's nodes are all that is left of its beginning.
TEST_F(GroupIndexTest, APinnedPathStaysWithoutBlocks) {
  Start(Make("window=16", 1), 8);
  const SequenceId id = Grow(Text(1, 64));
  Peer::index(*manager_).EvictIdle();
  EXPECT_EQ(Kept(Text(1, 64)), "- - - w ");
  EXPECT_EQ(manager_->report().index.nodes, 4u);
  manager_->CheckInvariants();
  const SequenceId other = manager_->Create();
  EXPECT_EQ(manager_->TakePrefix(other, Text(1, 64)), 64u);
  manager_->Finish(id);
  EXPECT_EQ(manager_->report().index.nodes, 4u);
  manager_->Truncate(other, 64);
  manager_->CheckInvariants();
  manager_->Finish(other);
  EXPECT_EQ(Kept(Text(1, 64)), "- - - w ");
  Peer::index(*manager_).EvictIdle();
  EXPECT_EQ(manager_->report().index.nodes, 0u);  // With its last block the whole path went.
  manager_->CheckInvariants();
}

TEST_F(GroupIndexTest, ABlockComputedAgainTakesTheEmptyPlace) {
  Start(Shape(), 12);
  const SequenceId id = Grow(Text(1, 64));
  Peer::index(*manager_).EvictIdle();
  EXPECT_EQ(Kept(Text(1, 64)), "-f -f -f wf ");
  EXPECT_EQ(Found(Text(1, 40)), 0u);
  const SequenceId other = Grow(Text(1, 40));
  EXPECT_EQ(Kept(Text(1, 64)), "wf wf -f wf ");
  EXPECT_EQ(Found(Text(1, 32)), 32u);
  EXPECT_EQ(manager_->report(other).shared_bytes, 2 * kLarge);
  manager_->Finish(id);
  manager_->CheckInvariants();
}

TEST_F(GroupIndexTest, AHitNeedsTheSinks) {
  Start(Make("window=20,sinks=3", 1), 8);
  PrefixIndex& index = Peer::index(*manager_);
  CachedSequence sequence(Peer::pool(*manager_));
  ASSERT_TRUE(sequence.Reserve(64));
  sequence.Advance(64);
  const Tokens text = Text(1, 64);
  std::vector<PrefixNodeId> path;
  for (std::size_t b = 0; b < 4; ++b) {
    const std::optional<BlockId> block =
        b == 0 ? std::nullopt : std::optional(sequence.blocks()[b]);
    const auto parent = path.empty() ? std::nullopt : std::optional(path.back());
    path.push_back(
        index.Insert(0, parent, std::span(text).subspan(b * 16, 16), {&block, 1}).value());
    index.Pin(path.back());
  }
  EXPECT_EQ(Kept(text), "- w w w ");
  EXPECT_EQ(Found(text), 0u);
  const std::optional<BlockId> first = sequence.blocks()[0];
  EXPECT_EQ(index.Insert(0, std::nullopt, std::span(text).first(16), {&first, 1}), path[0]);
  EXPECT_EQ(Found(text), 64u);
  index.CheckInvariants();
  for (const PrefixNodeId node : path) index.Unpin(node);
}

// A sequence ends group by group: what its last node still holds cannot be given up yet.
TEST_F(GroupIndexTest, IdleBytesStayWithinTheirLimit) {
  for (const std::uint64_t limit : {std::uint64_t{0}, kSmall, kLarge, 2 * kLarge + kSmall}) {
    for (const char* spec : {"0:window=16", "2:window=16"}) {  // Either group first.
      Start(Make(spec, 3), 12, limit);
      const SequenceId id = Grow(Text(1, 64));
      EXPECT_LE(manager_->pool_stats().idle_bytes, limit);
      manager_->Truncate(id, 20);
      manager_->CheckInvariants();
      manager_->Finish(id);
      manager_->CheckInvariants();
      const SequenceId other = Grow(Text(2, 64));
      manager_->Preempt(other, Preemption::kDrop);
      manager_->CheckInvariants();
      EXPECT_EQ(manager_->report().index.nodes == 0, limit < kLarge);
    }
  }
}

// ------------------------------------------------------------------ sequences

TEST(GroupSequenceTest, ReserveSeenHoldsWhatSuchALengthNeeds) {
  for (const char* spec : {"0:window=16", "window=20,sinks=3", "k=int4,group=16", "1:window=1"}) {
    const CacheGeometry geometry = Make(spec, 3, 32);
    for (std::size_t length = 0; length <= 200; length += 8) {
      SCOPED_TRACE(testing::Message() << spec << " " << length);
      LimitedMemory memory;
      const auto pool =
          BlockPool::Make(geometry, {.budget_bytes = 8 * geometry.block_bytes(), .memory = &memory})
              .value();
      CachedSequence sequence(*pool);
      memory.AllowBlocks(0);
      ASSERT_EQ(sequence.ReserveSeen(length).has_value(), length == 0);
      std::uint64_t blocks = 0;
      while (length > 0) {      // Refused at every point.
        memory.AllowBlocks(1);  // One more than is free in the pool.
        ++blocks;
        CachedSequence other(*pool);
        if (other.ReserveSeen(length)) {
          sequence = std::move(other);
          break;
        }
        ASSERT_EQ(pool->stats().live_blocks, 0u);
        ASSERT_LT(blocks, 40u);
      }
      sequence.Advance(length);
      sequence.CheckInvariants();
      ASSERT_EQ(sequence.held_bytes(), geometry.HeldBytes(length));
      sequence.DropUnseen();
      ASSERT_EQ(sequence.held_bytes(), geometry.HeldBytes(length));
    }
  }
}

TEST(GroupSequenceTest, ReserveSeenAsksTheBudgetFirst) {
  const CacheGeometry geometry = Shape();
  LimitedMemory memory;
  const auto pool =
      BlockPool::Make(geometry, {.budget_bytes = 3 * kLarge + 2 * kSmall, .memory = &memory})
          .value();
  CachedSequence sequence(*pool);
  EXPECT_EQ(sequence.ReserveSeen(64).error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(memory.lent_bytes(), 0u);
  EXPECT_TRUE(sequence.ReserveSeen(48));  // Three full blocks and one of the window.
  EXPECT_EQ(memory.lent_bytes(), 3 * kLarge + kSmall);
}

TEST(GroupSequenceTest, WhatNoQuerySeesIsDropped) {
  const auto pool =
      BlockPool::Make(Make("window=20,sinks=17", 1), {.budget_bytes = 100 * kSmall}).value();
  CachedSequence sequence(*pool);
  ASSERT_TRUE(sequence.Reserve(100));
  sequence.Advance(100);
  EXPECT_EQ(sequence.held_bytes(), 7 * kSmall);
  sequence.DropUnseen();  // 0 … 16 and 81 … are seen.
  EXPECT_EQ(sequence.held_bytes(), 4 * kSmall);
  const BlockTable& table = sequence.table(CacheGroupId(0));
  const bool held[] = {true, true, false, false, false, true, true};
  for (std::size_t b = 0; b < 7; ++b) EXPECT_EQ(table.holds(b), held[b]) << b;
  ASSERT_TRUE(sequence.Reserve(13));
  sequence.Advance(13);  // A query at 113 sees 94 …
  EXPECT_EQ(sequence.held_bytes(), 5 * kSmall);
  sequence.DropUnseen();
  EXPECT_EQ(sequence.held_bytes(), 5 * kSmall);
  sequence.CheckInvariants();
}

// Grows in one step, drops what is not seen, truncates; returns the length left.
std::size_t LeftOf(const CacheGeometry& geometry, std::size_t length, std::size_t new_length) {
  const auto pool =
      BlockPool::Make(geometry, {.budget_bytes = 100 * geometry.block_bytes()}).value();
  CachedSequence sequence(*pool);
  EXPECT_TRUE(sequence.Reserve(length));
  sequence.Advance(length);
  sequence.DropUnseen();
  const std::size_t left = sequence.Truncate(new_length);
  EXPECT_EQ(sequence.length(), left);
  sequence.CheckInvariants();
  EXPECT_TRUE(sequence.Reserve(40));
  sequence.Advance(40);
  sequence.CheckInvariants();
  return left;
}

TEST(GroupSequenceTest, ATruncationIntoWhatIsGoneLeavesTheLongestThatCanGoOn) {
  const CacheGeometry window = Make("window=20", 1);
  EXPECT_EQ(LeftOf(window, 100, 99), 99u);  // 80 … is held.
  EXPECT_EQ(LeftOf(window, 100, 98), 0u);   // 79 … would be seen.
  EXPECT_EQ(LeftOf(window, 100, 0), 0u);
  EXPECT_EQ(LeftOf(window, 30, 10), 10u);  // Nothing is gone yet.
  const CacheGeometry sinks = Make("window=20,sinks=16", 1);
  EXPECT_EQ(LeftOf(sinks, 100, 98), 16u);  // Sinks that fill a block.
  EXPECT_EQ(LeftOf(sinks, 100, 9), 9u);
  const CacheGeometry channels = Make("k=int4,group=16", 1, 32);
  EXPECT_EQ(LeftOf(channels, 70, 66), 66u);  // Its group is not complete.
  EXPECT_EQ(LeftOf(channels, 70, 63), 32u);
  EXPECT_EQ(LeftOf(channels, 70, 48), 32u);
  EXPECT_EQ(LeftOf(channels, 70, 64), 64u);
  const CacheGeometry both = Make("0:window=40;1:k=int4,group=32", 2, 32);
  EXPECT_EQ(LeftOf(both, 100, 97), 97u);
  EXPECT_EQ(LeftOf(both, 70, 63), 32u);
  EXPECT_EQ(LeftOf(both, 100, 63), 0u);
}

TEST(GroupSequenceTest, WhatATruncationTakesTooMuchIsComputedAgain) {
  const CacheGeometry geometry = Make("k=int4,group=16", 1, 32);
  const auto manager =
      SequenceManager::Make(geometry, {.pool = {.budget_bytes = 20 * geometry.block_bytes()}})
          .value();
  const SequenceId id = manager->Create();
  ASSERT_TRUE(manager->cache(id).Reserve(70));
  manager->cache(id).Advance(70);
  manager->Commit(id, Text(1, 70));
  manager->Truncate(id, 45);
  EXPECT_EQ(manager->cache(id).length(), 32u);
  const Tokens text = Text(1, 45);
  EXPECT_TRUE(std::ranges::equal(manager->tokens(id), text));
  EXPECT_TRUE(std::ranges::equal(manager->pending(id), std::span(text).subspan(32)));
  manager->CheckInvariants();
  ASSERT_TRUE(manager->cache(id).Reserve(13));
  manager->cache(id).Advance(13);
  manager->Commit(id, std::span(text).subspan(32));
  EXPECT_TRUE(manager->pending(id).empty());
  manager->CheckInvariants();
}

TEST(GroupSequenceTest, AFileHoldsTheWindowAlone) {
  const base::TestDirectory directory;
  const CacheGeometry geometry = Make("0:window=20,sinks=2;1:k=int4,group=16", 2);
  const auto manager =
      SequenceManager::Make(geometry, {.pool = {.budget_bytes = 20 * geometry.block_bytes()},
                                       .swap_env = &base::Env::Default(),
                                       .swap_directory = directory.path()})
          .value();
  const SequenceId id = manager->Create();
  ASSERT_TRUE(manager->cache(id).Reserve(100));
  manager->cache(id).Advance(100);
  manager->Commit(id, Text(1, 100));
  EXPECT_EQ(manager->cache(id).held_bytes(), geometry.HeldBytes(100));
  std::uint64_t blocks = 0;
  for (const BlockTable& table : manager->cache(id).tables()) blocks += table.held_blocks();
  EXPECT_EQ(blocks, 3u + 7u + 1u);  // The window and the sinks, values and rounded keys, the tail.
  EXPECT_EQ(manager->Preempt(id, Preemption::kSwap), Preemption::kSwap);
  // Six words, 100 tokens, the blocks, and a hash of 16 bytes for each part.
  EXPECT_EQ(manager->report(id).swapped_bytes,
            48 + 400 + geometry.HeldBytes(100) + 16 * (blocks + 1));
  EXPECT_EQ(manager->Resume(id).value(), 100u);
  EXPECT_EQ(manager->cache(id).held_bytes(), geometry.HeldBytes(100));
  EXPECT_EQ(manager->report().swap_in_tokens, 100u);
  manager->CheckInvariants();
}

// A text without end: bytes, blocks and nodes stay what they were after the first thousand.
TEST(GroupSequenceTest, AHundredThousandPositionsInConstantBytes) {
  const CacheGeometry geometry = Make("window=100,sinks=4;1:window=30", 2);
  const auto manager =
      SequenceManager::Make(geometry, {.pool = {.budget_bytes = 20 * geometry.block_bytes()},
                                       .max_indexed_tokens = 64})
          .value();
  const SequenceId id = manager->Create();
  CachedSequence& cache = manager->cache(id);
  std::uint64_t storage = 0;
  std::uint64_t most = 0;
  for (TokenId t = 0; t < 100'000; ++t) {
    ASSERT_TRUE(cache.Reserve(1));
    cache.Advance(1);
    manager->Commit(id, {&t, 1});
    ASSERT_EQ(cache.held_bytes(), geometry.HeldBytes(t + 1));
    const BlockPoolStats stats = manager->pool_stats();
    most = std::max(most, stats.live_bytes);
    if (t == 1000) storage = stats.storage_bytes();
    ASSERT_TRUE(t < 1000 || stats.storage_bytes() == storage) << t;
  }
  EXPECT_LE(most, geometry.PeakBytes(100'000, 1));
  // 100 positions, wherever they lie in blocks, and the sinks' block; 30 positions, and likewise.
  EXPECT_LE(most, (8 + 1 + 3 + 1) * kSmall);
  EXPECT_EQ(manager->report().index.nodes, 4u);
  manager->CheckInvariants();
}

}  // namespace
}  // namespace kvasir::kvcache
