// Breaks each invariant by hand: CheckInvariants must see it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {

struct CacheTestPeer {
  static auto& blocks(BlockPool& pool) { return pool.blocks_; }
  static auto& free(BlockPool& pool) { return pool.free_; }
  static auto& shared_blocks(BlockPool& pool) { return pool.shared_blocks_; }
  static auto& references(BlockPool& pool) { return pool.references_; }
  static auto& peak(BlockPool& pool) { return pool.peak_live_blocks_; }
  static auto& length(CachedSequence& sequence) { return sequence.length_; }
  static auto& blocks(CachedSequence& sequence) { return sequence.blocks_; }
  static auto& addresses(CachedSequence& sequence) { return sequence.addresses_; }
};

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
  EXPECT_DEATH(broken([&] { Peer::blocks(pool)[0].data = nullptr; }), "data != nullptr");
  EXPECT_DEATH(broken([&] { Peer::blocks(pool)[0].data += 4; }), "% 64 == 0");
  EXPECT_DEATH(broken([&] { ++Peer::shared_blocks(pool); }), "shared_blocks == ");
  EXPECT_DEATH(broken([&] { ++Peer::references(pool); }), "references == ");
  EXPECT_DEATH(broken([&] { --Peer::blocks(pool)[0].references; }), "shared_blocks == ");
  EXPECT_DEATH(broken([&] { ++Peer::blocks(pool)[0].references; }), "references == ");
  EXPECT_DEATH(broken([&] { Peer::peak(pool) = 1; }), "live_blocks <= peak");
  EXPECT_DEATH(broken([&] { Peer::peak(pool) = 4; }), "peak_live_blocks_ <= blocks_");
  EXPECT_DEATH(broken([&] { Peer::free(pool).clear(); }), "live_blocks [+] free_");
  EXPECT_DEATH(broken([&] { Peer::free(pool)[0] = BlockId(1); }), "references == 0");
  EXPECT_DEATH(broken([&] { Peer::free(pool)[0] = BlockId(7); }), "id.index[(][)] < blocks_");
  EXPECT_DEATH(broken([&] {
                 // One of two free blocks is listed twice, the other not at all.
                 fork_.Reset();
                 sequence_.Reset();
                 Peer::free(pool)[0] = Peer::free(pool)[1];
               }),
               "!is_free");
  EXPECT_DEATH(broken([&] {
                 Peer::blocks(pool).push_back(Peer::blocks(pool)[0]);
                 Peer::blocks(pool).back().references = 0;
               }),
               "blocks_.size[(][)] <= capacity_blocks_");
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
  // A shared block in which no position below the length lies.
  EXPECT_DEATH(broken([&] { Peer::length(sequence) = 16; }), "i < filled");
}

}  // namespace
}  // namespace kvasir::kvcache
