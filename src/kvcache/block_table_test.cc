#include "kvcache/block_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "kvcache/limited_memory.h"

namespace kvasir::kvcache {
namespace {

CacheGeometry Shape() {
  return CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 2}).value();
}
constexpr CacheGroupId kGroup{0};

class BlockTableTest : public testing::Test {
 protected:
  ~BlockTableTest() override { pool_->CheckInvariants(); }
  std::uint64_t live() const { return pool_->stats().live_blocks; }

  LimitedMemory memory_;
  const std::unique_ptr<BlockPool> pool_ =
      BlockPool::Make(Shape(), {.budget_bytes = 8 * Shape().block_bytes(), .memory = &memory_})
          .value();
};

TEST_F(BlockTableTest, HoldsDropsAndShares) {
  BlockTable table(*pool_, kGroup);
  ASSERT_TRUE(table.Append(3));
  EXPECT_EQ(table.entries(), 3u);
  table.Drop(0);
  EXPECT_FALSE(table.holds(0));
  EXPECT_EQ(table.addresses()[0], nullptr);
  EXPECT_EQ(table.held_blocks(), 2u);
  EXPECT_EQ(live(), 2u);
  BlockTable fork = table.Fork(2);
  EXPECT_EQ(fork.entries(), 2u);
  EXPECT_FALSE(fork.holds(0));
  EXPECT_EQ(fork.blocks()[1], table.blocks()[1]);
  EXPECT_EQ(table.shared_blocks(), 1u);
  fork.Share(std::nullopt);
  fork.Share(table.blocks()[2]);
  EXPECT_EQ(fork.held_blocks(), 2u);
  EXPECT_EQ(table.shared_blocks(), 2u);
  table.CheckInvariants();
  fork.CheckInvariants();
  fork.Shrink(1);
  EXPECT_EQ(fork.held_blocks(), 0u);
  EXPECT_EQ(live(), 2u);
}

TEST_F(BlockTableTest, ACopyTakesTheFilledSlotsAndTheSharersKeepTheirs) {
  BlockTable table(*pool_, kGroup);
  ASSERT_TRUE(table.Append(1));
  auto* numbers = reinterpret_cast<float*>(table.addresses()[0]);
  for (int i = 0; i < 64; ++i) numbers[i] = static_cast<float>(i + 1);
  BlockTable fork = table.Fork(1);
  ASSERT_TRUE(fork.CopyBlock(0, 5));
  EXPECT_NE(fork.addresses()[0], table.addresses()[0]);
  EXPECT_EQ(reinterpret_cast<float*>(fork.addresses()[0])[4], 5.0f);        // A key.
  EXPECT_EQ(reinterpret_cast<float*>(fork.addresses()[0])[32 + 9], 42.0f);  // Value of slot 4.
  EXPECT_EQ(live(), 2u);
  fork.Replace(0, table.blocks()[0]);
  EXPECT_EQ(live(), 1u);
}

TEST_F(BlockTableTest, AppendingIsAllOrNothing) {
  BlockTable table(*pool_, kGroup);
  memory_.AllowBlocks(2);
  EXPECT_EQ(table.Append(3).error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(table.entries(), 0u);
  EXPECT_EQ(live(), 0u);
  ASSERT_TRUE(table.Append(2));
  EXPECT_FALSE(table.CopyBlock(0, 1));
  table.CheckInvariants();
}

TEST_F(BlockTableTest, MovesTakeTheReferences) {
  BlockTable table(*pool_, kGroup);
  ASSERT_TRUE(table.Append(2));
  BlockTable other(std::move(table));
  EXPECT_EQ(other.held_blocks(), 2u);
  BlockTable third(*pool_, kGroup);
  ASSERT_TRUE(third.Append(1));
  third = std::move(other);
  EXPECT_EQ(third.entries(), 2u);
  EXPECT_EQ(live(), 2u);
}

TEST_F(BlockTableTest, ProgrammersErrors) {
  BlockTable table(*pool_, kGroup);
  ASSERT_TRUE(table.Append(1));
  table.Drop(0);
  EXPECT_DEATH(table.Drop(0), "holds");
  EXPECT_DEATH(table.Replace(0, BlockId(0)), "holds");
  EXPECT_DEATH((void)table.CopyBlock(0, 1), "holds");
}

}  // namespace
}  // namespace kvasir::kvcache
