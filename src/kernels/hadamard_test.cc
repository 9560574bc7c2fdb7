#include "kernels/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "kernels/random_test_values.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4714;

class HadamardOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, HadamardOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

// ±1: the sign of row i, column j of the matrix is the parity of i & j.
double Sign(std::size_t i, std::size_t j) { return std::popcount(i & j) % 2 == 0 ? 1 : -1; }

TEST(HadamardSize, IsTheLargestPowerOfTwoThatDivides) {
  EXPECT_EQ(HadamardSize(1), 1u);
  EXPECT_EQ(HadamardSize(33), 1u);
  EXPECT_EQ(HadamardSize(20), 4u);
  EXPECT_EQ(HadamardSize(80), 16u);
  EXPECT_EQ(HadamardSize(128), 128u);
}

TEST_P(HadamardOnTarget, IsTheMatrixWithinItsBoundAndItsOwnInverse) {
  for (const std::size_t head_dim :
       {1u, 2u, 4u, 7u, 8u, 16u, 20u, 32u, 48u, 64u, 80u, 128u, 512u}) {
    const std::size_t n = HadamardSize(head_dim), heads = 3;
    const std::vector<float> x = RandomValues(kSeed, heads * head_dim, 1, 3.0f);
    std::vector<float> got = x, reference = x;
    HadamardRotate(got.data(), heads, head_dim);
    ReferenceHadamardRotate(reference.data(), heads, head_dim);
    ASSERT_TRUE(SameBits(reference, got)) << head_dim;
    std::vector<float> back = got;
    HadamardRotate(back.data(), heads, head_dim);
    if (n == 1) {
      EXPECT_TRUE(SameBits(x, got)) << head_dim;
    }
    const double unit = (std::log2(n) + 2) * 0x1p-24;
    for (std::size_t run = 0; run < x.size(); run += n) {
      double norm = 0, error = 0, back_error = 0;
      for (std::size_t i = 0; i < n; ++i) {
        double exact = 0;
        for (std::size_t j = 0; j < n; ++j) exact += Sign(i, j) * x[run + j];
        exact /= std::sqrt(static_cast<double>(n));
        norm += double{x[run + i]} * x[run + i];
        error += std::pow(got[run + i] - exact, 2);
        back_error += std::pow(double{back[run + i]} - x[run + i], 2);
      }
      // A hundredth more for the products of roundings.
      EXPECT_LE(std::sqrt(error), 1.01 * unit * std::sqrt(norm)) << head_dim;
      EXPECT_LE(std::sqrt(back_error), 2.01 * unit * std::sqrt(norm)) << head_dim;
    }
  }
}

TEST_P(HadamardOnTarget, SpreadsAnOutlierEvenly) {
  std::vector<float> x(64, 0.0f);
  x[5] = 8.0f;
  HadamardRotate(x.data(), 1, 64);
  for (const float y : x) EXPECT_EQ(std::abs(y), 1.0f);
}

}  // namespace
}  // namespace kvasir::kernels
