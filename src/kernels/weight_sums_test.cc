#include "kernels/weight_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 90125;

// Of many sizes, some of them 0.
std::vector<float> Weights(std::size_t n) {
  std::vector<float> weights(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = base::Philox4x32(kSeed, {static_cast<std::uint32_t>(i), 1, 0, 0});
    const int exponent = static_cast<int>(w[2] % 60) - 50;
    const auto mantissa = static_cast<float>(base::UniformDouble(w[0], w[1]));
    weights[i] = w[3] % 5 == 0 ? 0.0f : std::ldexp(mantissa, exponent);
  }
  return weights;
}

class WeightSums : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, WeightSums, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

constexpr std::size_t kSizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 80, 127, 128, 129, 1000, 6915};

TEST_P(WeightSums, CumulativeWeightsHaveTheReferenceBits) {
  for (std::size_t n : kSizes) {
    const std::vector<float> weights = Weights(n);
    const std::size_t blocks = (n + kWeightBlock - 1) / kWeightBlock;
    std::vector<double> expected(blocks), got(blocks);
    EXPECT_EQ(CumulativeWeights(weights.data(), n, got.data()),
              ReferenceCumulativeWeights(weights.data(), n, expected.data()));
    EXPECT_EQ(got, expected) << n;
    // Doubles of numbers with 24 bits and exponents 60 apart: all but exact.
    double exact = 0;
    for (float weight : weights) exact += static_cast<double>(weight);
    EXPECT_NEAR(got.back(), exact, exact * 1e-13) << n;
    for (std::size_t b = 1; b < blocks; ++b) EXPECT_GE(got[b], got[b - 1]);
  }
}

TEST_P(WeightSums, ExponentialsHaveTheReferenceBits) {
  for (std::size_t n : kSizes) {
    std::vector<float> x = Weights(n);
    for (float& value : x) value = value * 0.01f - 3.0f;
    const float max = 9.0f;
    const double got = ExpSumF64(x.data(), n, max);
    EXPECT_EQ(got, ReferenceExpSumF64(x.data(), n, max)) << n;
    double exact = 0;
    for (float value : x) exact += std::exp(static_cast<double>(value - max));
    EXPECT_NEAR(got, exact, exact * 2e-7) << n;  // exp is at most 1.1 ULP off.
  }
}

}  // namespace
}  // namespace kvasir::kernels
