// Breaks each invariant by hand: CheckInvariants must see it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kvcache/cache_test_peer.h"

namespace kvasir::kvcache {
namespace {

using Peer = CacheTestPeer;

CacheGeometry Shape() {
  return CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1}).value();
}

// Two live blocks, both shared, and a free one, in a pool of three. Each death happens in a child
// process, so the fixture stays whole.
class InvariantsDeathTest : public testing::Test {
 protected:
  InvariantsDeathTest() {
    EXPECT_TRUE(sequence_.Reserve(40).has_value());
    sequence_.Advance(20);
    sequence_.Truncate(20);
    fork_ = sequence_.Fork();
    pool_->CheckInvariants();
    sequence_.CheckInvariants();
  }

  const std::unique_ptr<BlockPool> pool_ =
      BlockPool::Make(Shape(), {.budget_bytes = 3 * Shape().block_bytes()}).value();
  CachedSequence sequence_{*pool_};
  CachedSequence fork_{*pool_};
};

TEST_F(InvariantsDeathTest, Pool) {
  BlockPool& pool = *pool_;
  const auto broken = [&pool](auto&& damage) {
    damage();
    pool.CheckInvariants();
  };
  EXPECT_DEATH(broken([&] { Peer::blocks(pool)[0].data = nullptr; }), "references == 0");
  EXPECT_DEATH(broken([&] { Peer::blocks(pool)[0].data += 4; }), "% 64 == 0");
  EXPECT_DEATH(broken([&] { ++Peer::stats(pool).shared_blocks; }), "sum == stats_");
  EXPECT_DEATH(broken([&] { ++Peer::stats(pool).references; }), "sum == stats_");
  EXPECT_DEATH(broken([&] { --Peer::blocks(pool)[0].references; }), "sum == stats_");
  EXPECT_DEATH(broken([&] { ++Peer::blocks(pool)[0].references; }), "sum == stats_");
  EXPECT_DEATH(broken([&] { Peer::stats(pool).peak_live_bytes = 1; }), "live_bytes <= ");
  EXPECT_DEATH(broken([&] { Peer::stats(pool).peak_live_bytes = 1000; }), "<= sum.budget_bytes");
  EXPECT_DEATH(broken([&] { ++Peer::stats(pool).idle_blocks; }), "sum == stats_");
  EXPECT_DEATH(broken([&] { Peer::vacant(pool).push_back(BlockId(0)); }), "vacant == ");
  EXPECT_DEATH(broken([&] { Peer::blocks(pool)[0].kept = true; }), "keeper_ != nullptr");
  EXPECT_DEATH(broken([&] { Peer::free(pool)[0].clear(); }), "free == ");
  EXPECT_DEATH(broken([&] { Peer::free(pool)[0][0] = BlockId(1); }), "references == 0");
  EXPECT_DEATH(broken([&] { Peer::free(pool)[0][0] = BlockId(7); }), "id.index[(][)] < blocks_");
  EXPECT_DEATH(broken([&] {
                 // One of two free blocks is listed twice, the other not at all.
                 fork_.Reset();
                 sequence_.Reset();
                 Peer::free(pool)[0][0] = Peer::free(pool)[0][1];
               }),
               "!is_free");
  EXPECT_DEATH(broken([&] {
                 Peer::stats(pool).budget_bytes = 2 * Shape().block_bytes();
               }),
               "storage_bytes[(][)] <= ");
}

TEST_F(InvariantsDeathTest, Sequence) {
  CachedSequence& sequence = sequence_;
  const auto broken = [&sequence](auto&& damage) {
    damage();
    sequence.CheckInvariants();
  };
  EXPECT_DEATH(broken([&] { Peer::length(sequence) = 33; }), "length_ <= slots");
  EXPECT_DEATH(broken([&] { Peer::addresses(sequence).pop_back(); }), "addresses_.size");
  EXPECT_DEATH(
      broken([&] { std::swap(Peer::addresses(sequence)[0], Peer::addresses(sequence)[1]); }),
      "addresses_.i. == ");
  EXPECT_DEATH(broken([&] { Peer::blocks(sequence)[0] = BlockId(2); }), "references > 0");
  EXPECT_DEATH(broken([&] { Peer::addresses(sequence)[0] = nullptr; }), "held == ");
  EXPECT_DEATH(broken([&] {
                 Peer::addresses(sequence)[0] = nullptr;
                 --Peer::held(sequence);
               }),
               "NeedsBlock");
  EXPECT_DEATH(broken([&] { ++Peer::entries(sequence); }), "entries");
  // A shared block in which no position below the length lies.
  EXPECT_DEATH(broken([&] { Peer::length(sequence) = 16; }), "i < filled");
}

// Blocks 0 and 1 indexed, one after the other, and idle; block 2 indexed beside block 0, and live.
class IndexInvariantsDeathTest : public testing::Test {
 protected:
  IndexInvariantsDeathTest() {
    Index(idle_, {std::vector<TokenId>(16, 1), std::vector<TokenId>(16, 2)});
    Index(live_, {std::vector<TokenId>(16, 3)});
    idle_.Reset();
    index_.CheckInvariants();
    pool_->CheckInvariants();
  }

  void Index(CachedSequence& sequence, const std::vector<std::vector<TokenId>>& blocks) {
    EXPECT_TRUE(sequence.Reserve(16 * blocks.size()));
    sequence.Advance(16 * blocks.size());
    std::optional<PrefixNodeId> node;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::optional<BlockId> block = sequence.blocks()[i];
      node = index_.Insert(0, node, blocks[i], {&block, 1});
    }
  }

  const std::unique_ptr<BlockPool> pool_ =
      BlockPool::Make(Shape(), {.budget_bytes = 4 * Shape().block_bytes()}).value();
  PrefixIndex index_{*pool_, {}};
  CachedSequence idle_{*pool_};
  CachedSequence live_{*pool_};
};

TEST_F(IndexInvariantsDeathTest, Index) {
  PrefixIndex& index = index_;
  const auto broken = [&index](auto&& damage) {
    damage();
    index.CheckInvariants();
  };
  EXPECT_DEATH(broken([&] { Peer::node_of_block(index)[0].reset(); }), "NodeOf");
  EXPECT_DEATH(broken([&] { Peer::node(index, 0).tokens.pop_back(); }), "tokens.size");
  EXPECT_DEATH(broken([&] { Peer::node(index, 0).tokens[3] = 9; }), "node.hash == ");
  EXPECT_DEATH(broken([&] { Peer::node(index, 0).hash.high ^= 1; }), "node.hash == ");
  EXPECT_DEATH(broken([&] {
                 const auto hash = Peer::node(index, 0).hash;
                 Peer::by_hash(index).at(hash) = PrefixNodeId(1);
               }),
               "by_hash_.at");
  EXPECT_DEATH(broken([&] { Peer::siblings(index).begin()->second = PrefixNodeId(2); }),
               "siblings_.at");
  EXPECT_DEATH(broken([&] {
                 Peer::node(index, 1).pins = 1;
                 Peer::evictable(index).clear();
               }),
               "parent.used");
  EXPECT_DEATH(broken([&] { ++Peer::node(index, 1).live; }), "live == ");
  EXPECT_DEATH(broken([&] { Peer::node(index, 1).blocks[0].reset(); }), "holds_nothing");
  EXPECT_DEATH(broken([&] { Peer::node(index, 0).last_use = 0; }), "last_use > ");
  EXPECT_DEATH(broken([&] { ++Peer::node(index, 0).children; }), "children == ");
  EXPECT_DEATH(broken([&] { Peer::evictable(index).clear(); }), "evictable_.contains");
  EXPECT_DEATH(broken([&] { Peer::evictable(index).emplace(9, PrefixNodeId(2)); }),
               "evictable == ");
  EXPECT_DEATH(broken([&] { Peer::unused(index).emplace_back(7); }), "unused_.size");
  EXPECT_DEATH(broken([&] { ++Peer::stats(index).nodes; }), "stats_.nodes");
  EXPECT_DEATH(broken([&] { ++Peer::stats(index).log_prob_bytes; }), "log_prob_bytes");
  EXPECT_DEATH(broken([&] { ++Peer::stats(*pool_).idle_blocks; }), "idle == ");
}

TEST(ManagerInvariantsDeathTest, Manager) {
  const auto manager = SequenceManager::Make(Shape(),
                                             {.pool = {.budget_bytes = 8 * Shape().block_bytes()}})
                           .value();
  const SequenceId id = manager->Create();
  std::vector<TokenId> tokens(40);
  for (TokenId i = 0; i < 40; ++i) tokens[i] = i;
  ASSERT_TRUE(manager->cache(id).Reserve(40));
  manager->cache(id).Advance(40);
  manager->Commit(id, tokens);
  manager->CheckInvariants();
  auto& entry = Peer::entry(*manager, id);
  const auto broken = [&manager](auto&& damage) {
    damage();
    manager->CheckInvariants();
  };
  EXPECT_DEATH(broken([&] { entry.tokens.pop_back(); }), "committed <= entry.tokens");
  EXPECT_DEATH(broken([&] { entry.committed = 41; }), "committed <= entry.cache");
  EXPECT_DEATH(broken([&] { entry.tokens[20] = 7; }), "tokens");
  EXPECT_DEATH(broken([&] { entry.preempted = true; }), "preempted");
  EXPECT_DEATH(broken([&] { entry.swapped_length = 3; }), "swapped_length");
  EXPECT_DEATH(broken([&] { entry.log_probs[40] = {}; }), "log_probs");
  EXPECT_DEATH(broken([&] { Peer::pool(*manager).AddRef(entry.cache.blocks()[2]); }),
               "references == ");
  EXPECT_DEATH(broken([&] { entry.path.pop_back(); }), "path.size");
  EXPECT_DEATH(broken([&] { entry.collided = true; }), "collisions > 0");
  EXPECT_DEATH(broken([&] { std::swap(entry.path[0], entry.path[1]); }), "tokens");
  EXPECT_DEATH(broken([&] { Peer::unused(*manager).emplace_back(4); }), "unused_.size");
  EXPECT_DEATH(broken([&] {
                 auto& index = Peer::index(*manager);
                 Peer::node(index, 1).parent.reset();
                 manager->CheckInvariants();
               }),
               "check failed");
}

}  // namespace
}  // namespace kvasir::kvcache
