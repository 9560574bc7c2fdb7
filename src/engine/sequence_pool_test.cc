#include "engine/sequence_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kvcache/sequence.h"

namespace kvasir::engine {
namespace {

model::ModelShape Shape() {
  model::ModelShape shape;
  shape.layers = 2;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.context = 40;
  return shape;
}

TEST(SequencePoolTest, HoldsTheSequencesItIsMadeFor) {
  const auto pool = MakeSequencePool(Shape(), {}, 2);
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool.value()->stats().capacity_blocks, 8u);  // 3 of a context and 1 more, twice.
  EXPECT_EQ(pool.value()->stats().storage_bytes(), 0u);
  kvcache::CachedSequence first(*pool.value());
  kvcache::CachedSequence second(*pool.value());
  EXPECT_TRUE(first.Reserve(40));
  EXPECT_TRUE(second.Reserve(40));
}

TEST(SequencePoolTest, TooLargeIsRefused) {
  const auto pool = MakeSequencePool(Shape(), {}, std::numeric_limits<std::uint64_t>::max());
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, base::ErrorCode::kUsage);
  EXPECT_THAT(pool.error().message, ::testing::HasSubstr("18446744073709551615"));
}

}  // namespace
}  // namespace kvasir::engine
