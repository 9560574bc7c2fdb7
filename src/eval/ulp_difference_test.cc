#include "eval/ulp_difference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace kvasir::eval {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

TEST(UlpDistanceTest, CountsStepsAlongTheFloats) {
  EXPECT_EQ(UlpDistance(1.0f, 1.0f), 0u);
  EXPECT_EQ(UlpDistance(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(UlpDistance(1.0f, 2.0f), 1u << 23);
  EXPECT_EQ(UlpDistance(2.0f, 1.0f), 1u << 23);
  EXPECT_EQ(UlpDistance(-kTiny, kTiny), 2u);
  EXPECT_EQ(UlpDistance(0.0f, -0.0f), 0u);
  EXPECT_EQ(UlpDistance(std::numeric_limits<float>::max(), kInf), 1u);
  EXPECT_EQ(UlpDistance(-kInf, kInf), 2u * 0x7F800000u);
  EXPECT_EQ(UlpDistance(kNan, kNan), 0u);
  EXPECT_EQ(UlpDistance(kNan, 1.0f), std::nullopt);
  EXPECT_EQ(UlpDistance(kNan, std::bit_cast<float>(0x7FC00001u)), std::nullopt);
}

TEST(CompareUlpTest, TellsHowManyDifferAndByHowMuch) {
  const std::vector<float> a = {1.0f, 2.0f, 0.0f, kNan, -3.0f};
  std::vector<float> b = a;
  const UlpDifference equal = CompareUlp(a, b);
  EXPECT_EQ(equal.count, 5u);
  EXPECT_EQ(equal.differing, 0u);
  EXPECT_FALSE(equal.first_differing);

  b[1] = std::nextafter(std::nextafter(2.0f, 3.0f), 3.0f);
  b[2] = -0.0f;
  b[4] = kNan;
  const UlpDifference different = CompareUlp(a, b);
  EXPECT_EQ(different.differing, 3u);  // −0 differs from +0 in its bits.
  EXPECT_EQ(different.incomparable, 1u);
  EXPECT_EQ(different.ulp_max, 2u);
  EXPECT_DOUBLE_EQ(different.ulp_mean, 2.0 / 4);
  EXPECT_DOUBLE_EQ(different.absolute_max, 2 * std::ldexp(1.0, -22));
  EXPECT_EQ(different.first_differing, 1u);
}

TEST(CompareUlpTest, NothingIsEqualToNothing) {
  const UlpDifference none = CompareUlp({}, {});
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.differing, 0u);
  EXPECT_EQ(none.ulp_mean, 0.0);
}

}  // namespace
}  // namespace kvasir::eval
