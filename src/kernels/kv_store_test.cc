// Storing and reading back: layouts, what is read, groups of keys.
#include "kernels/kv_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/kv_numbers.h"
#include "kernels/kv_rounding.h"
#include "kernels/kv_test_cache.h"
#include "kernels/random_test_values.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4716;

std::vector<float> Row(std::size_t width, std::size_t position, std::uint32_t stream) {
  return RandomValues(kSeed, width, static_cast<std::uint32_t>(position) * 4 + stream, 3.0f);
}

// What a number of the row is read as, by kv_rounding.h.
std::vector<float> ReadOf(KvType type, const float* x, std::size_t count) {
  std::vector<float> read(x, x + count);
  std::vector<std::int8_t> bytes(count);
  std::vector<std::uint8_t> nibbles(count);
  RowScale scale;
  if (type == KvType::kInt8) scale = ReferenceRoundInt8(x, count, bytes.data());
  if (type == KvType::kInt4) scale = ReferenceRoundInt4(x, count, nibbles.data());
  const float s = tensor::BF16ToF32(scale.scale), m = tensor::BF16ToF32(scale.minimum);
  for (std::size_t i = 0; i < count; ++i) {
    if (type == KvType::kF16) read[i] = tensor::F16ToF32(RoundF16(x[i]));
    if (type == KvType::kBf16) read[i] = tensor::BF16ToF32(RoundBf16(x[i]));
    if (type == KvType::kInt8) read[i] = s * static_cast<float>(bytes[i]);
    if (type == KvType::kInt4) read[i] = std::fma(s, static_cast<float>(nibbles[i]), m);
  }
  return read;
}

TEST(KvType, BytesAreThoseOfTheLayout) {
  EXPECT_EQ(KTileBytes(KvType::kF32, 32), 2048u);
  EXPECT_EQ(KTileBytes(KvType::kBf16, 33), 1056u);
  EXPECT_EQ(KTileBytes(KvType::kInt8, 32), 512u + 32);  // 8.5 bits a number
  EXPECT_EQ(VTileBytes(KvType::kInt4, 32), 256u + 64);  // 5 bits
  EXPECT_EQ(KTileBytes(KvType::kInt4, 33), 17u * 16 + 64);
  EXPECT_EQ(KTileBytes(KvType::kInt4Channel, 33), 17u * 16);
  EXPECT_EQ(ChannelScaleBytes(32), 128u);
  for (const KvType type : kKeyTypes) {
    for (std::size_t d = 1; d < 70; ++d) EXPECT_EQ(KTileBytes(type, d) % 16, 0u);
    EXPECT_FALSE(KvTypeName(type).empty());
  }
}

// Every place of a value row of 4-bit numbers is used once, and of the bytes no half is left but
// the last of an odd run.
TEST(KvStore, NibblesOfAValueRowHaveAPlaceEach) {
  for (std::size_t head_dim = 1; head_dim <= 130; ++head_dim) {
    std::vector<bool> used(2 * ((head_dim + 1) / 2));
    for (std::size_t d = 0; d < head_dim; ++d) {
      const NibblePlace place = ValueNibble(d, head_dim);
      const std::size_t half = 2 * place.byte + (place.high ? 1 : 0);
      ASSERT_LT(half, used.size());
      ASSERT_FALSE(used[half]) << d << " of " << head_dim;
      used[half] = true;
    }
  }
  EXPECT_EQ(ValueNibble(17, 64).byte, 1u);
  EXPECT_TRUE(ValueNibble(17, 64).high);
  EXPECT_EQ(ValueNibble(36, 40).byte, 16u);
}

TEST(KvStore, EveryTypeReadsWhatItsRowRoundsTo) {
  for (const KvType k_type : kKeyTypes) {
    if (k_type == KvType::kInt4Channel) continue;
    for (const KvType v_type : kValueTypes) {
      for (const std::size_t head_dim : {1u, 2u, 7u, 16u, 31u, 32u, 33u, 48u, 63u, 80u, 128u}) {
        const KvTestShape shape = {k_type, v_type, 3, head_dim, 32, 32};
        const std::size_t length = 40, width = 3 * head_dim;
        KvTestCache cache(shape, length);
        for (std::size_t t = 0; t < length; ++t) {
          cache.Store(t, Row(width, t, 0).data(), Row(width, t, 1).data());
        }
        for (std::size_t t = 0; t < length; ++t) {
          for (std::size_t head = 0; head < 3; ++head) {
            std::vector<float> k(head_dim), v(head_dim);
            LoadKv(cache.View(), t, head, k.data(), v.data());
            const auto k_row = Row(width, t, 0), v_row = Row(width, t, 1);
            ASSERT_EQ(k, ReadOf(k_type, k_row.data() + head * head_dim, head_dim)) << shape.Name();
            ASSERT_EQ(v, ReadOf(v_type, v_row.data() + head * head_dim, head_dim)) << shape.Name();
          }
        }
      }
    }
  }
}

// A group's channel is rounded as a row is; queries of the group itself see it in full precision;
// blocks of every size, also shorter than the group, read the same.
TEST(KvStore, GroupsOfKeysAreRoundedByChannel) {
  for (const std::size_t group : {16u, 32u, 64u, 256u}) {
    for (const std::size_t block_tokens : {16u, 32u, 128u, 256u}) {
      for (const std::size_t head_dim : {5u, 32u}) {
        const KvTestShape shape = {KvType::kInt4Channel, KvType::kInt8, 2, head_dim,
                                   block_tokens,         group};
        const std::size_t length = 2 * group + 3, width = 2 * head_dim;
        KvTestCache cache(shape, length);
        for (std::size_t t = 0; t < length; ++t) {
          cache.Store(t, Row(width, t, 0).data(), Row(width, t, 1).data());
        }
        std::vector<float> k(head_dim), v(head_dim);
        for (std::size_t d = 0; d < head_dim; ++d) {
          std::vector<float> column;
          for (std::size_t t = group; t < 2 * group; ++t) {
            column.push_back(Row(width, t, 0)[head_dim + d]);
          }
          const std::vector<float> read = ReadOf(KvType::kInt4, column.data(), group);
          for (std::size_t t = group; t < 2 * group; ++t) {
            LoadKv(cache.View(), t, 1, k.data(), v.data());
            ASSERT_EQ(k[d], read[t - group]) << shape.Name();
            LoadKv(cache.View(), t, 1, k.data(), v.data(), 2 * group);
            ASSERT_EQ(k[d], read[t - group]) << shape.Name();
            LoadKv(cache.View(), t, 1, k.data(), v.data(), 2 * group - 1);
            ASSERT_EQ(k[d], column[t - group]) << shape.Name();
          }
        }
        LoadKv(cache.View(), length - 1, 0, k.data(), v.data(), length - 1);
        EXPECT_EQ(k[0], Row(width, length - 1, 0)[0]);
      }
    }
  }
}

TEST(KvStore, GroupsLeaveOutBlocksThatAreGone) {
  const KvTestShape shape = {KvType::kInt4Channel, KvType::kF32, 1, 8, 16, 64};
  KvTestCache cache(shape, 64), whole(shape, 64);
  for (std::size_t t = 0; t < 64; ++t) {
    whole.Store(t, Row(8, t, 0).data(), Row(8, t, 1).data());
    if (t == 63) cache.Free(63, 20, 0);  // Blocks 0 and 1.
    cache.Store(t, Row(8, t, 0).data(), Row(8, t, 1).data());
  }
  EXPECT_EQ(cache.View().blocks[1], nullptr);
  for (std::size_t t = 32; t < 64; ++t) {
    std::vector<float> a(8), b(8);
    LoadKey(cache.View(), t, 0, kLaterGroup, a.data());
    LoadKey(whole.View(), t, 0, kLaterGroup, b.data());
    EXPECT_EQ(a, b);
  }
}

}  // namespace
}  // namespace kvasir::kernels
