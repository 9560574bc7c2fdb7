#include "kvcache/block_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/aligned.h"

namespace kvasir::kvcache {
namespace {

// Where an element lies in a block, in floats, written out from the layout's documentation.
struct Place {
  std::size_t k;
  std::size_t v;
};
Place PlaceOf(const CacheGeometry& shape, std::size_t layer, std::size_t head, std::size_t slot,
              std::size_t column) {
  const std::size_t tokens = shape.block_tokens();
  const std::size_t dim = shape.head_dim();
  const std::size_t part = shape.kv_heads() * tokens * dim;
  const std::size_t tile = head * (tokens / 16) + slot / 16;
  return {.k = 2 * layer * part + (tile * dim + column) * 16 + slot % 16,
          .v = (2 * layer + 1) * part + (head * tokens + slot) * dim + column};
}

class BlockCopyTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(BlockCopyTest, CopiesTheFilledSlotsAndLeavesLaterTilesAndRows) {
  const CacheGeometry shape =
      CacheGeometry::Make({.layers = 2, .kv_heads = 3, .head_dim = 5, .block_tokens = GetParam()})
          .value();
  const std::size_t floats = shape.block_bytes() / sizeof(float);
  base::AlignedArray<float> from(floats);
  for (std::size_t i = 0; i < floats; ++i) from[i] = static_cast<float>(i + 1);

  for (std::uint32_t slots = 0; slots <= shape.block_tokens(); ++slots) {
    base::AlignedArray<float> to(floats);
    CopySlots(shape, CacheGroupId(0), slots, reinterpret_cast<const std::byte*>(from.data()),
              reinterpret_cast<std::byte*>(to.data()));
    std::size_t copied = 0;
    for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
      for (std::size_t head = 0; head < shape.kv_heads(); ++head) {
        for (std::size_t slot = 0; slot < shape.block_tokens(); ++slot) {
          for (std::size_t column = 0; column < shape.head_dim(); ++column) {
            const Place place = PlaceOf(shape, layer, head, slot, column);
            const bool in_tile = slot < (slots + 15u) / 16u * 16u;
            ASSERT_EQ(to[place.k], in_tile ? from[place.k] : 0.0f) << slots << " " << slot;
            ASSERT_EQ(to[place.v], slot < slots ? from[place.v] : 0.0f) << slots << " " << slot;
            copied += 2;
          }
        }
      }
    }
    ASSERT_EQ(copied, floats);  // Every element of the block was looked at.
  }
}

TEST_P(BlockCopyTest, CopiesTheFilledLatentRowsAndNothingElse) {
  const CacheGeometry shape =
      CacheGeometry::Make({.layers = 3, .block_tokens = GetParam(), .latent_dim = 7, .rope_dim = 2})
          .value();
  const std::size_t floats = shape.block_bytes() / sizeof(float);
  base::AlignedArray<float> from(floats);
  for (std::size_t i = 0; i < floats; ++i) from[i] = static_cast<float>(i + 1);
  for (std::uint32_t slots = 0; slots <= shape.block_tokens(); ++slots) {
    base::AlignedArray<float> to(floats);
    CopySlots(shape, CacheGroupId(0), slots, reinterpret_cast<const std::byte*>(from.data()),
              reinterpret_cast<std::byte*>(to.data()));
    for (std::size_t i = 0; i < floats; ++i) {  // [layers][block_tokens][7 + 2]
      const std::size_t slot = i / 9 % shape.block_tokens();
      ASSERT_EQ(to[i], slot < slots ? from[i] : 0.0f) << slots << " " << slot;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BlockSizes, BlockCopyTest, testing::Values(16, 32, 48));

TEST(BlockCopyDeathTest, MoreSlotsThanABlockHas) {
  const CacheGeometry shape =
      CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 1}).value();
  std::vector<std::byte> from(shape.block_bytes());
  std::vector<std::byte> to(shape.block_bytes());
  EXPECT_DEATH(CopySlots(shape, CacheGroupId(0), 17, from.data(), to.data()), "slots <= ");
}

}  // namespace
}  // namespace kvasir::kvcache
