// Rounding of rows: the bits of the plain formulas on every target, bounds, and exact cases.
#include "kernels/kv_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/random_test_values.h"
#include "kernels/targets.h"
#include "tensor/half.h"

namespace kvasir::kernels {
namespace {

using tensor::BF16ToF32;

constexpr std::uint64_t kSeed = 4715;
constexpr double kUnit = 0x1p-24;

struct Rounded {
  RowScale scale;
  std::vector<int> n;
  friend bool operator==(const Rounded& a, const Rounded& b) {
    return a.n == b.n && a.scale.scale == b.scale.scale && a.scale.minimum == b.scale.minimum;
  }
};

template <typename T, typename Round>
Rounded With(const Round& round, const std::vector<float>& x) {
  std::vector<T> n(x.size() + 1, T{77});  // What lies behind must stay.
  Rounded rounded;
  rounded.scale = round(x.data(), x.size(), n.data());
  EXPECT_EQ(n.back(), T{77});
  rounded.n.assign(n.begin(), n.end() - 1);
  return rounded;
}
Rounded Int8(const std::vector<float>& x) {
  const Rounded got = With<std::int8_t>(RoundInt8, x);
  EXPECT_EQ(got, With<std::int8_t>(ReferenceRoundInt8, x));
  return got;
}
Rounded Int4(const std::vector<float>& x) {
  const Rounded got = With<std::uint8_t>(RoundInt4, x);
  EXPECT_EQ(got, With<std::uint8_t>(ReferenceRoundInt4, x));
  return got;
}

class RoundingOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, RoundingOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

// A bf16 scale rounded up is at most 2^−7 larger than it need be.
TEST_P(RoundingOnTarget, EveryLengthAndSizeIsWithinHalfAStep) {
  for (std::size_t n = 1; n <= 70; ++n) {
    for (const float size : {1e37f, 1000.0f, 1.0f, 1e-20f, 1e-36f, 1e-40f}) {
      std::vector<float> x = RandomValues(kSeed, n, static_cast<std::uint32_t>(n), size);
      for (const float shift : {0.0f, 5 * size}) {
        for (float& v : x) v += shift;
        const double largest = std::abs(*std::max_element(
            x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
        const auto [min, max] = std::minmax_element(x.begin(), x.end());
        const Rounded bytes = Int8(x);
        const double s8 = BF16ToF32(bytes.scale.scale);
        EXPECT_LE(s8, largest / 127 * (1 + 0x1p-7) + 0x1p-133);
        const Rounded nibbles = Int4(x);
        const double s4 = BF16ToF32(nibbles.scale.scale), m4 = BF16ToF32(nibbles.scale.minimum);
        EXPECT_LE(m4, *min);
        EXPECT_GE(m4, *min - std::abs(*min) * 0x1p-7 - 0x1p-133);
        EXPECT_LE(s4, (double{*max} - m4) / 15 * (1 + 0x1p-7) + 0x1p-133);
        for (std::size_t i = 0; i < n; ++i) {
          // The quotient is rounded before it is rounded to an integer.
          EXPECT_LE(std::abs(s8 * bytes.n[i] - x[i]), s8 * (0.5 + 128 * kUnit) + 0x1p-143) << i;
          EXPECT_LE(std::abs(s4 * nibbles.n[i] + m4 - x[i]), s4 * (0.5 + 64 * kUnit) + 0x1p-145)
              << i << " of " << n << " size " << size;
        }
      }
    }
  }
}

TEST_P(RoundingOnTarget, ZerosAndEqualNumbersAreExact) {
  for (const std::size_t n : {1u, 7u, 16u, 33u}) {
    for (const float zero : {0.0f, -0.0f}) {
      const std::vector<float> zeros(n, zero);
      EXPECT_EQ(Int8(zeros), (Rounded{{0, 0}, std::vector<int>(n, 0)}));
      EXPECT_EQ(Int4(zeros), (Rounded{{0, 0}, std::vector<int>(n, 0)}));
    }
    // 2.5 and −0.75 are numbers of bf16: all of int4 is the minimum.
    const std::vector<float> equal(n, 2.5f), negative(n, -0.75f);
    EXPECT_EQ(Int4(equal), (Rounded{{0, tensor::F32ToBF16(2.5f)}, std::vector<int>(n, 0)}));
    EXPECT_EQ(Int4(negative), (Rounded{{0, tensor::F32ToBF16(-0.75f)}, std::vector<int>(n, 0)}));
    EXPECT_EQ(Int8(equal).n, std::vector<int>(n, 126));  // 2.5 / 127 goes up to 0.019775…
  }
}

TEST_P(RoundingOnTarget, HugeNumbersAndDenormalsAreExact) {
  // 127 · 2^k: the scale is 2^k, and every multiple of it is itself.
  for (const int k : {120, 0, -60, -126, -133}) {
    std::vector<float> x;
    std::vector<int> n;
    for (const int i : {127, -127, 1, -1, 64, 0, 100, 3, -77}) {
      x.push_back(std::ldexp(static_cast<float>(i), k));
      n.push_back(i);
    }
    EXPECT_EQ(Int8(x), (Rounded{{tensor::F32ToBF16(std::ldexp(1.0f, k)), 0}, n})) << k;
  }
  // −8 … 7 times 2^k.
  for (const int k : {124, 0, -60, -126, -133}) {
    std::vector<float> x;
    std::vector<int> n;
    for (const int i : {15, 0, 1, 8, 7, 3, 14}) {
      x.push_back(std::ldexp(static_cast<float>(i - 8), k));
      n.push_back(i);
    }
    const RowScale scale = {tensor::F32ToBF16(std::ldexp(1.0f, k)),
                            tensor::F32ToBF16(std::ldexp(-8.0f, k))};
    EXPECT_EQ(Int4(x), (Rounded{scale, n})) << k;
  }
  // Ends of the range: neither a range nor a difference overflows on the way.
  const float max = std::numeric_limits<float>::max();
  EXPECT_EQ(Int8({max, -max, 0}).n, (std::vector<int>{126, -126, 0}));
  EXPECT_EQ(Int4({max, -max, 0, 0.5f * max, -0.5f * max}).n, (std::vector<int>{15, 0, 7, 11, 4}));
  EXPECT_EQ(BF16ToF32(Int4({max, -max}).scale.minimum), -0x1.FEp127f);
  // Smaller than a scale can be: int8 reads zeros.
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Int8({tiny, -tiny}), (Rounded{{0, 0}, {0, 0}}));
}

TEST_P(RoundingOnTarget, HalvesGoToEven) {
  // Scale 1 by the largest of 127; minimum 0 and scale 1 by 15.
  EXPECT_EQ(Int8({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 2.500001f}).n,
            (std::vector<int>{127, 0, 2, 2, 0, -2, -2, 3}));
  EXPECT_EQ(Int4({15, 0, 0.5f, 1.5f, 2.5f, 14.5f, 13.5f, 2.500001f}).n,
            (std::vector<int>{15, 0, 0, 2, 2, 14, 14, 3}));
}

TEST_P(RoundingOnTarget, WhatIsNoNumberSpoilsTheWholeRow) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {0u, 3u, 18u}) {
      std::vector<float> x(19, 1.0f);
      x[place] = bad;
      EXPECT_TRUE(std::isnan(BF16ToF32(Int8(x).scale.scale)));
      EXPECT_TRUE(std::isnan(BF16ToF32(Int4(x).scale.scale)));
      EXPECT_TRUE(std::isnan(BF16ToF32(Int4(x).scale.minimum)));
    }
  }
}

TEST(RoundHalf, ClampsNumbersAndNothingElse) {
  EXPECT_EQ(RoundF16(1e38f), 0x7BFF);
  EXPECT_EQ(RoundF16(-65519.0f), 0xFBFF);
  EXPECT_EQ(RoundF16(INFINITY), 0x7C00);
  EXPECT_GT(RoundF16(NAN) & 0x7FFF, 0x7C00);
  EXPECT_EQ(RoundF16(1.0f + 0x1p-11f), 0x3C00);  // A half, to even.
  EXPECT_EQ(RoundF16(0x1p-24f), 1);
  EXPECT_EQ(RoundBf16(std::numeric_limits<float>::max()), 0x7F7F);
  EXPECT_EQ(RoundBf16(-INFINITY), 0xFF80);
  EXPECT_GT(RoundBf16(NAN) & 0x7FFF, 0x7F80);
  EXPECT_EQ(RoundBf16(0x1p-133f), 1);
}

}  // namespace
}  // namespace kvasir::kernels
