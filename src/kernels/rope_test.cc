// Rotary positions: angles against long doubles, both pairings on every target.
#include "kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "kernels/random_test_values.h"
#include "kernels/scalar_math.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4712;

double Uniform(std::uint32_t i, std::uint32_t stream) {
  const auto w = base::Philox4x32(kSeed, {i, stream, 0, 0});
  return base::UniformDouble(w[0], w[1]);
}

// base^(−2i / 2·pairs), as any program has them.
std::vector<double> Frequencies(std::size_t pairs, double base = 10000) {
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    frequencies[i] = std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
  }
  return frequencies;
}

class RopeOnTarget : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { ForceTarget(GetParam()); }
  void TearDown() override { UseBestTarget(); }
};
INSTANTIATE_TEST_SUITE_P(All, RopeOnTarget, testing::ValuesIn(AvailableTargets()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(SinCos, WithinItsStatedErrorUpToTheLargestAngle) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 200000; ++i) {
    // From 2^−20 to 2^32, every size as likely; a few negative; then the borders of the quarters.
    double x = std::ldexp(1 + Uniform(i, 1), static_cast<int>(Uniform(i, 2) * 52) - 20);
    if (i % 8 == 0) x = -x;
    if (i % 16 == 1) x = std::floor(Uniform(i, 3) * 0x1p31) * 1.5707963267948966;
    const SinCos got = SinCosF64(x);
    // glibc's long double functions reduce by more digits than any of these angles needs.
    const long double exact = x;
    worst = std::max(worst, static_cast<double>(std::abs(got.sin - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::abs(got.cos - std::cos(exact))));
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, 3e-16);
  EXPECT_EQ(SinCosF64(0).sin, 0.0);
  EXPECT_EQ(SinCosF64(0).cos, 1.0);
}

TEST(PowF64, WithinItsStatedError) {
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const double x = std::ldexp(1 + Uniform(i, 4), static_cast<int>(Uniform(i, 5) * 50));
    const double y = -2 * Uniform(i, 6);
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    const double bound = (std::abs(y * std::log(x)) + 1) * 0x1p-50;
    EXPECT_LE(static_cast<double>(std::abs(PowF64(x, y) / exact - 1)), bound) << x << "^" << y;
  }
  EXPECT_EQ(PowF64(10000, 0), 1.0);
}

TEST_P(RopeOnTarget, TurnsHaveTheReferenceBits) {
  for (std::size_t pairs : {1u, 2u, 3u, 4u, 7u, 8u, 9u, 16u, 33u, 64u}) {
    const auto frequencies = Frequencies(pairs);
    for (std::size_t position : {0u, 1u, 2u, 3u, 5u, 127u, 4096u, 1048575u}) {
      std::vector<float> expected(2 * pairs), got(2 * pairs);
      ReferenceRopeTurn(frequencies.data(), pairs, position, expected.data());
      RopeTurn(frequencies.data(), pairs, position, got.data());
      ASSERT_TRUE(SameBits(expected, got)) << pairs << " at " << position;
      for (std::size_t i = 0; i < pairs; ++i) {  // One rounding to f32.
        const double angle = static_cast<double>(position) * frequencies[i];
        EXPECT_NEAR(got[i], std::cos(angle), 0x1p-25 + 1e-15);
        EXPECT_NEAR(got[pairs + i], std::sin(angle), 0x1p-25 + 1e-15);
      }
    }
  }
}

TEST_P(RopeOnTarget, HeadsHaveTheReferenceBits) {
  for (RopePairing pairing : {RopePairing::kNeighbours, RopePairing::kHalves}) {
    for (std::size_t pairs : {1u, 3u, 4u, 8u, 12u, 16u, 17u, 32u, 45u}) {
      const std::size_t stride = 2 * pairs + 6, heads = 3;
      std::vector<float> turn(2 * pairs), x(heads * stride);
      ReferenceRopeTurn(Frequencies(pairs).data(), pairs, 77, turn.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(Uniform(static_cast<std::uint32_t>(i), 9) * 4 - 2);
      }
      const std::vector<float> before = x;
      std::vector<float> expected = x;
      RopeArgs args = {turn.data(), pairs, pairing, heads, stride, expected.data()};
      ReferenceRope(args);
      args.x = x.data();
      Rope(args);
      ASSERT_TRUE(SameBits(expected, x)) << pairs;
      for (std::size_t head = 0; head < heads; ++head) {
        const float* was = before.data() + head * stride;
        const float* is = x.data() + head * stride;
        for (std::size_t i = 0; i < pairs; ++i) {
          const std::size_t a = pairing == RopePairing::kHalves ? i : 2 * i;
          const std::size_t b = pairing == RopePairing::kHalves ? i + pairs : 2 * i + 1;
          const double c = turn[i], s = turn[pairs + i];
          EXPECT_NEAR(is[a], was[a] * c - was[b] * s, 1e-6);  // 2 roundings of numbers below 4
          EXPECT_NEAR(is[b], was[a] * s + was[b] * c, 1e-6);
        }
        for (std::size_t i = 2 * pairs; i < stride; ++i) EXPECT_EQ(is[i], was[i]);
      }
    }
  }
}

// What rotary positions are for: a score depends on the distance of its two positions alone.
TEST(Rope, ScoresDependOnTheDistanceAlone) {
  constexpr std::size_t kPairs = 16;
  const auto frequencies = Frequencies(kPairs);
  const auto rotated = [&](std::size_t position, std::uint32_t stream) {
    std::vector<float> x(2 * kPairs), turn(2 * kPairs);
    for (std::uint32_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(Uniform(i, stream)) - 1;
    RopeTurn(frequencies.data(), kPairs, position, turn.data());
    Rope({turn.data(), kPairs, RopePairing::kHalves, 1, 2 * kPairs, x.data()});
    return x;
  };
  const auto score = [&](std::size_t q_position, std::size_t k_position) {
    const auto q = rotated(q_position, 20), k = rotated(k_position, 21);
    double sum = 0;
    for (std::size_t i = 0; i < q.size(); ++i) sum += double{q[i]} * k[i];
    return sum;
  };
  const double expected = score(9, 2);
  for (std::size_t shift : {1u, 100u, 65536u}) {
    EXPECT_NEAR(score(9 + shift, 2 + shift), expected, 32 * 4 * 0x1p-24 * 2);
  }
  EXPECT_GT(std::abs(score(9, 3) - expected), 1e-3);
}

}  // namespace
}  // namespace kvasir::kernels
