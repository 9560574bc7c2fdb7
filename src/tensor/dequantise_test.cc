#include "tensor/dequantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace kvasir::tensor {
namespace {

constexpr DType kBlockTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                                 DType::kQ5_1, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                                 DType::kQ5_K, DType::kQ6_K};

std::vector<std::byte> Fixture(const std::string& name) {
  std::ifstream in(std::string(KVASIR_SOURCE_DIR) + "/tests/quant/data/" + name, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// tests/quant/make_fixture.py: blocks packed from their fields, and the formula of those fields.
TEST(Dequantise, MeansWhatTheFieldsSay) {
  for (const DType dtype : kBlockTypes) {
    const std::string name(DTypeName(dtype));
    const std::vector<std::byte> file = Fixture(name + ".bin");
    const std::size_t per_block = BlockBytes(dtype) + 4 * BlockElements(dtype);
    ASSERT_GE(file.size(), 8 * per_block) << name;
    ASSERT_EQ(file.size() % per_block, 0u) << name;
    const std::size_t count = file.size() / per_block * BlockElements(dtype);
    const auto blocks = std::span(file).first(BytesOf(dtype, count));
    std::vector<float> got(count), expected(count);
    std::memcpy(expected.data(), file.data() + blocks.size(), 4 * count);
    Dequantise(dtype, blocks, got);
    for (std::size_t i = 0; i < count; ++i) {
      // Equal, not the same bits: −0 where a scale of −0 or a number of 0 meets a sign.
      ASSERT_EQ(got[i], expected[i]) << name << " element " << i;
    }
  }
}

// A scale that is not finite shows in the numbers, so that a reader sees it.
TEST(Dequantise, ScalesThatAreNotFiniteShow) {
  for (const DType dtype : kBlockTypes) {
    std::vector<std::byte> block(BlockBytes(dtype), std::byte{0xFF});  // Every f16 is NaN.
    std::vector<float> out(BlockElements(dtype));
    Dequantise(dtype, block, out);
    EXPECT_TRUE(std::isnan(out[0])) << DTypeName(dtype);
    EXPECT_TRUE(std::isnan(out.back())) << DTypeName(dtype);
  }
}

}  // namespace
}  // namespace kvasir::tensor
