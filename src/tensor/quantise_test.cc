#include "tensor/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/philox.h"
#include "tensor/dequantise.h"
#include "tensor/half.h"

namespace kvasir::tensor {
namespace {

constexpr DType kTypes[] = {DType::kQ8_0, DType::kQ4_0};

std::vector<float> Normals(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto w = base::Philox4x32(20261201, {static_cast<std::uint32_t>(i), 0, 0, 0});
    values[i] = std::ldexp(static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1),
                           static_cast<int>(i / 32 % 40) - 20);
  }
  return values;
}

float ScaleOf(const std::byte* block) {
  std::uint16_t half;
  std::memcpy(&half, block, 2);
  return F16ToF32(half);
}

// tests/quant/make_fixture.py computes the reference rounding in exact arithmetic.
TEST(Quantise, GivesTheReferenceBytes) {
  for (const DType dtype : kTypes) {
    const std::string name(DTypeName(dtype));
    std::ifstream in(std::string(KVASIR_SOURCE_DIR) + "/tests/quant/data/encode_" + name + ".bin",
                     std::ios::binary);
    const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::size_t per_block = BlockBytes(dtype) + 4 * 32;
    ASSERT_GE(file.size(), 40 * per_block);
    ASSERT_EQ(file.size() % per_block, 0u);
    std::vector<float> values(file.size() / per_block * 32);
    std::memcpy(values.data(), file.data(), 4 * values.size());
    std::vector<std::byte> got(BytesOf(dtype, values.size()));
    Quantise(dtype, values, got);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(static_cast<unsigned char>(got[i]),
                static_cast<unsigned char>(file[4 * values.size() + i]))
          << name << " byte " << i;
    }
  }
}

// Half a step, the scale's own rounding, and of Q4_0 the end that is cut off: d · 8 is no number.
TEST(Quantise, ErrsByHalfAStep) {
  const std::vector<float> values = Normals(32 * 400);
  for (const DType dtype : kTypes) {
    std::vector<std::byte> blocks(BytesOf(dtype, values.size()));
    std::vector<float> back(values.size());
    Quantise(dtype, values, blocks);
    Dequantise(dtype, blocks, back);
    const double most = dtype == DType::kQ8_0 ? 127 : 8;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double scale = std::abs(ScaleOf(blocks.data() + i / 32 * BlockBytes(dtype)));
      double bound = scale * (0.5 + most * 0x1p-10) + most * 0x1p-25;  // f16, and its subnormals.
      if (dtype == DType::kQ4_0) bound += scale * 0.5;
      ASSERT_NEAR(back[i], values[i], bound) << DTypeName(dtype) << " " << i;
    }
  }
}

// What is rounded already stays: the scale is an f16, and the largest number is at the end.
TEST(Quantise, ItsOwnNumbersComeBack) {
  const std::vector<float> values = Normals(32 * 200);
  for (const DType dtype : kTypes) {
    std::vector<std::byte> once(BytesOf(dtype, values.size())), twice(once.size());
    std::vector<float> back(values.size());
    Quantise(dtype, values, once);
    Dequantise(dtype, once, back);
    Quantise(dtype, back, twice);
    std::vector<float> again(values.size());
    Dequantise(dtype, twice, again);
    EXPECT_EQ(again, back) << DTypeName(dtype);
  }
}

// Numbers so small that the reciprocal of their scale overflows, and so large that the scale does.
TEST(Quantise, ExtremesAreDefined) {
  for (const DType dtype : kTypes) {
    std::vector<std::byte> block(BlockBytes(dtype));
    std::vector<float> back(32), values(32, 1e-42f);
    Quantise(dtype, values, block);
    Dequantise(dtype, block, back);
    EXPECT_EQ(*std::max_element(back.begin(), back.end()), 0.0f);
    std::fill(values.begin(), values.end(), 3e38f);
    Quantise(dtype, values, block);
    EXPECT_TRUE(std::isinf(ScaleOf(block.data())));
  }
}

}  // namespace
}  // namespace kvasir::tensor
