#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "tensor/convert.h"
#include "tensor/half.h"
#include "tensor/shape.h"

namespace kvasir::tensor {
namespace {

TEST(Half, EveryF16RoundTrips) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    const float f = F16ToF32(h);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(f))));
    } else {
      ASSERT_EQ(F32ToF16(f), h);
    }
  }
}

// Oracle: the nearest of the two f16 neighbours, by exact comparison in double; ties to even.
TEST(Half, RoundsToNearestEven) {
  const std::uint64_t seed = 20261130;
  for (std::uint32_t trial = 0; trial < 200000; ++trial) {
    const auto words = base::Philox4x32(seed, {trial, 0, 0, 0});
    const double magnitude =
        std::ldexp(1.0 + words[0] * 0x1p-32, static_cast<int>(words[1] % 44) - 27);
    const float f = static_cast<float>(magnitude);
    const std::uint16_t h = F32ToF16(f);
    if (h == 0x7C00) {
      ASSERT_GE(f, 65520.0f);
      continue;
    }
    const double error = std::abs(static_cast<double>(F16ToF32(h)) - f);
    for (int step : {-1, 1}) {
      if (h == 0 && step < 0) continue;
      const auto other = static_cast<std::uint16_t>(h + step);
      if (other == 0x7C00) continue;
      const double other_error = std::abs(static_cast<double>(F16ToF32(other)) - f);
      ASSERT_TRUE(error < other_error || (error == other_error && h % 2 == 0))
          << f << " seed " << seed;
    }
  }
}

TEST(BF16, RoundsToNearestEven) {
  EXPECT_EQ(F32ToBF16(1.0f), 0x3F80);
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie, even stays
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3F818000u)), 0x3F82);  // tie, to even
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(BF16ToF32(F32ToBF16(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
}

TEST(Convert, RoundTripsUnaligned) {
  const std::vector<float> values = {0.0f, -0.0f, 1.5f, -2.25f, 1024.0f};
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<std::byte> bytes = ConvertFromF32(dtype, values);
    bytes.insert(bytes.begin(), std::byte{0});  // shift by one byte
    std::vector<float> back(values.size());
    ConvertToF32(dtype, std::span(bytes).subspan(1), back);
    EXPECT_EQ(back, values);
  }
}

TEST(Shape, CountsInCheckedArithmetic) {
  EXPECT_EQ(Shape({3, 5}).ElementCount(), 15u);
  EXPECT_EQ(Shape().ElementCount(), 1u);
  EXPECT_EQ(Shape({std::uint64_t{1} << 62, 4}).ElementCount(), std::nullopt);
  EXPECT_EQ(Shape({6915, 128}).ToString(), "[6915, 128]");
}

}  // namespace
}  // namespace kvasir::tensor
