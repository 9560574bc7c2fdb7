#include "formats/gguf_type.h"

#include <gtest/gtest.h>

#include <set>

namespace kvasir::formats {
namespace {

TEST(GgufTypeTest, TableIsSound) {
  std::set<std::string_view> names;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const GgufTypeInfo* info = FindGgufType(number);
    if (info == nullptr) continue;
    EXPECT_EQ(static_cast<std::uint32_t>(info->type), number);
    EXPECT_EQ(&InfoOf(info->type), info);
    EXPECT_TRUE(names.insert(info->name).second) << info->name;
    // A block is a power of two of elements, and no type takes more than 8 bytes for one.
    EXPECT_EQ(info->block_elements & (info->block_elements - 1), 0u);
    EXPECT_GE(info->block_bytes, 1u);
    EXPECT_LE(info->block_bytes, 8 * info->block_elements);
  }
  EXPECT_EQ(names.size(), 34u);
}

// Bits per element as the types' authors state them.
TEST(GgufTypeTest, BitsPerElement) {
  const auto bits = [](std::uint32_t number) {
    const GgufTypeInfo& info = *FindGgufType(number);
    return 8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_elements);
  };
  EXPECT_EQ(bits(0), 32.0);
  EXPECT_EQ(bits(2), 4.5);      // Q4_0
  EXPECT_EQ(bits(7), 6.0);      // Q5_1
  EXPECT_EQ(bits(8), 8.5);      // Q8_0
  EXPECT_EQ(bits(10), 2.625);   // Q2_K
  EXPECT_EQ(bits(11), 3.4375);  // Q3_K
  EXPECT_EQ(bits(12), 4.5);     // Q4_K
  EXPECT_EQ(bits(13), 5.5);     // Q5_K
  EXPECT_EQ(bits(14), 6.5625);  // Q6_K
  EXPECT_EQ(bits(16), 2.0625);  // IQ2_XXS
  EXPECT_EQ(bits(17), 2.3125);  // IQ2_XS
  EXPECT_EQ(bits(18), 3.0625);  // IQ3_XXS
  EXPECT_EQ(bits(19), 1.5625);  // IQ1_S
  EXPECT_EQ(bits(21), 3.4375);  // IQ3_S
  EXPECT_EQ(bits(22), 2.5625);  // IQ2_S
  EXPECT_EQ(bits(23), 4.25);    // IQ4_XS
  EXPECT_EQ(bits(29), 1.75);    // IQ1_M
  EXPECT_EQ(bits(34), 1.6875);  // TQ1_0
  EXPECT_EQ(bits(35), 2.0625);  // TQ2_0
}

TEST(GgufTypeTest, DTypes) {
  std::size_t found = 0;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const GgufTypeInfo* info = FindGgufType(number);
    if (info == nullptr || !ToDType(info->type)) continue;
    const tensor::DType dtype = *ToDType(info->type);
    ++found;
    EXPECT_EQ(ToGgufType(dtype), info->type);
    EXPECT_EQ(info->name, tensor::DTypeName(dtype));
    EXPECT_EQ(info->block_elements, tensor::BlockElements(dtype));
    EXPECT_EQ(info->block_bytes, tensor::BlockBytes(dtype));
  }
  EXPECT_EQ(found, std::size(tensor::kDTypes));
  EXPECT_EQ(ToDType(FindGgufType(16)->type), std::nullopt);  // IQ2_XXS
}

}  // namespace
}  // namespace kvasir::formats
