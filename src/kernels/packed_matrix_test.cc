#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "kernels/random_test_values.h"
#include "tensor/convert.h"

namespace kvasir::kernels {
namespace {

using tensor::DType;

TEST(PackedMatrix, WeighsWhatItsTypeSays) {
  const PackedMatrix f32(20, 64), q8(20, 64, DType::kQ8_0), q4(20, 64, DType::kQ4_0);
  EXPECT_EQ(f32.bytes(), 32u * 64 * 4);  // Two panels of 16.
  EXPECT_EQ(PackedMatrix(33, 64).bytes(), 48u * 64 * 4);
  EXPECT_EQ(PackedMatrix(33, 64, DType::kQ8_0).bytes(), 64u * 2 * 34);  // Two pairs of panels.
  EXPECT_EQ(q8.bytes(), 32u * 2 * 34);
  EXPECT_EQ(q4.bytes(), 32u * 2 * 18);
  EXPECT_EQ(f32.saved_bytes(), 0u);
  EXPECT_EQ(q8.saved_bytes(), 20u * (64 * 4 - 2 * 34));
  EXPECT_EQ(q4.saved_bytes(), 20u * (64 * 4 - 2 * 18));
  EXPECT_TRUE(q8.rounded() && q4.rounded() && !f32.rounded());
}

// Every integer of every type, at every step and lane, with scales of every size.
TEST(PackedMatrix, RowsComeBackFromBlocks) {
  constexpr std::size_t kRows = 37, kWidth = 96;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    std::vector<std::byte> blocks(kRows * tensor::BytesOf(dtype, kWidth));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = static_cast<std::byte>(i * 197 + i / 256 * 31);
    }
    for (std::size_t i = 0; i < blocks.size(); i += tensor::BlockBytes(dtype)) {
      blocks[i + 1] &= std::byte{0xBF};  // Scales from subnormals up, of both signs, none infinite.
    }
    std::vector<float> expected(kRows * kWidth), row(kWidth);
    tensor::ConvertToF32(dtype, blocks, expected);
    PackedMatrix packed(kRows, kWidth, dtype);
    const std::size_t first = 5 * tensor::BytesOf(dtype, kWidth);  // In two parts.
    PackBlocks(std::span(blocks).subspan(first), 5, packed);
    PackBlocks(std::span(blocks).first(first), 0, packed);
    const PackedMatrix wide = Widened(packed);
    EXPECT_FALSE(wide.rounded());
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::vector<float> wanted(
          expected.begin() + static_cast<std::ptrdiff_t>(r * kWidth),
          expected.begin() + static_cast<std::ptrdiff_t>((r + 1) * kWidth));
      UnpackRow(packed, r, row.data());
      EXPECT_TRUE(SameBits(row, wanted)) << DTypeName(dtype) << " row " << r;
      UnpackRow(wide, r, row.data());
      EXPECT_TRUE(SameBits(row, wanted)) << DTypeName(dtype) << " row " << r;
    }
    for (std::size_t r = 37; r < 48; ++r) EXPECT_EQ(RoundedScale(packed, r, 0), 0.0f);
  }
}

}  // namespace
}  // namespace kvasir::kernels
