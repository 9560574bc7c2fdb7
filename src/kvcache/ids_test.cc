#include "kvcache/ids.h"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>
#include <unordered_set>

namespace kvasir::kvcache {
namespace {

using OtherId = StrongId<struct OtherTag>;

// Ids convert neither to nor from numbers, nor into ids of another kind.
static_assert(!std::convertible_to<std::uint32_t, BlockId>);
static_assert(!std::convertible_to<BlockId, std::uint32_t>);
static_assert(!std::constructible_from<BlockId, OtherId>);
static_assert(!std::equality_comparable_with<BlockId, OtherId>);
static_assert(!std::equality_comparable_with<BlockId, std::uint32_t>);
static_assert(!std::default_initializable<BlockId>);
static_assert(std::is_trivially_copyable_v<BlockId> && sizeof(BlockId) == sizeof(std::uint32_t));

TEST(StrongIdTest, ComparesAndHashesByIndex) {
  const BlockId three(3);
  EXPECT_EQ(three.index(), 3u);
  EXPECT_EQ(three, BlockId(3));
  EXPECT_LT(three, BlockId(4));
  const std::unordered_set<BlockId> ids = {BlockId(3), BlockId(4), BlockId(3)};
  EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace kvasir::kvcache
