// The gradients of RMSNorm and SwiGLU on every target: equal bits, and those of double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/activation.h"
#include "kernels/norm.h"
#include "kernels/random_test_values.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 4409;
constexpr double kU = 0x1p-24;  // Unit roundoff of f32.

std::vector<float> Random(std::size_t n, std::uint32_t stream, float scale = 2.0f) {
  return RandomValues(kSeed, n, stream, scale);
}

// Runs body on each target and checks that the vector it returns has the same bits on all.
template <typename Body>
std::vector<float> OnEveryTarget(const Body& body) {
  std::vector<float> first;
  for (const Target& target : AvailableTargets()) {
    ForceTarget(target);
    const std::vector<float> result = body();
    if (first.empty()) first = result;
    EXPECT_TRUE(SameBits(first, result)) << target.name;
  }
  UseBestTarget();
  return first;
}

double InverseRms(const float* x, std::size_t n, float eps) {
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
  return 1 / std::sqrt(squares / static_cast<double>(n) + eps);
}

TEST(RmsNormGrad, InputGradientIsThatOfDoubles) {
  constexpr float kEps = 0.01f;
  for (std::size_t n : {1u, 5u, 16u, 31u, 64u, 200u}) {
    const auto x = Random(n, 1), dy = Random(n, 2), gain = Random(n, 3), before = Random(n, 4);
    const auto got = OnEveryTarget([&] {
      std::vector<float> dx = before;
      const float inverse = RmsNormInputGrad(x.data(), dy.data(), gain.data(), n, kEps, dx.data());
      dx.push_back(inverse);
      return dx;
    });
    const double inverse = InverseRms(x.data(), n, kEps);
    double sum = 0, terms = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += double{dy[i]} * gain[i] * x[i] * inverse;
      terms += std::abs(double{dy[i]} * gain[i] * x[i] * inverse);
    }
    const auto count = static_cast<double>(n);
    // The longest lane, its fold, and the inverse's own: a sum, a division, a root, a division.
    const double roundings = count / 16 + 1 + 4 + (count / 16 + 1 + 4 + 3);
    EXPECT_NEAR(got[n], inverse, roundings * kU * inverse);
    for (std::size_t i = 0; i < n; ++i) {
      const double g = double{dy[i]} * gain[i];
      const double xhat = x[i] * inverse;
      const double expected = before[i] + inverse * (g - xhat * sum / count);
      const double size = inverse * (std::abs(g) + std::abs(xhat) * terms / count);
      EXPECT_NEAR(got[i], expected, (2 * roundings + 8) * kU * (size + std::abs(expected)))
          << n << " " << i;
    }
  }
}

TEST(RmsNormGrad, GainGradientIsAChainOverRows) {
  constexpr std::size_t kRows = 7;
  for (std::size_t n : {1u, 15u, 33u, 128u}) {
    const auto x = Random(kRows * n, 5), dy = Random(kRows * n, 6);
    std::vector<RowStats> stats;
    for (std::size_t r = 0; r < kRows; ++r) {
      // Another mean than RMSNorm's: it is not read.
      stats.push_back({3.0f, static_cast<float>(InverseRms(x.data() + r * n, n, 1e-5f))});
    }
    const std::size_t end = n - n / 4, begin = n / 3;
    const auto got = OnEveryTarget([&] {
      std::vector<float> dgain = Random(n, 7);
      RmsNormGainGrad(x.data(), dy.data(), stats.data(), kRows, n, begin, end, dgain.data());
      return dgain;
    });
    auto expected = Random(n, 7);
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t c = begin; c < end; ++c) {
        const float xhat = x[r * n + c] * stats[r].inverse_deviation;
        expected[c] = std::fma(dy[r * n + c], xhat, expected[c]);
      }
    }
    EXPECT_TRUE(SameBits(got, expected)) << n;
  }
}

TEST(SwiGluGrad, IsThatOfDoubles) {
  for (std::size_t n : {1u, 7u, 16u, 33u, 300u}) {
    const auto gate = Random(n, 8, 12.0f), up = Random(n, 9), dy = Random(n, 10);
    const auto got = OnEveryTarget([&] {
      std::vector<float> both(2 * n);
      SwiGluGrad(gate.data(), up.data(), dy.data(), n, both.data(), both.data() + n);
      return both;
    });
    for (std::size_t i = 0; i < n; ++i) {
      const double g = gate[i];
      const double s = 1 / (1 + std::exp(-g));
      const double slope = s + g * s * (1 - s);
      // s errs by 4 roundings (exp, sum, division); slope's two terms may cancel.
      const double slope_error = 12 * kU * (s + std::abs(g) * s);
      EXPECT_NEAR(got[i], double{dy[i]} * up[i] * slope,
                  std::abs(double{dy[i]} * up[i]) * (slope_error + 4 * kU * std::abs(slope)))
          << g;
      EXPECT_NEAR(got[n + i], dy[i] * g * s, 8 * kU * std::abs(dy[i] * g * s)) << g;
    }
  }
}

// The slope of what SwiGlu itself computes.
TEST(SwiGluGrad, IsTheSlopeOfSwiGlu) {
  for (float gate : {-20.0f, -3.0f, -0.5f, 0.0f, 0.7f, 4.0f, 30.0f}) {
    const float up = 1.5f, one = 1.0f, step = 0x1p-8f;
    float dgate = 0, dup = 0;
    SwiGluGrad(&gate, &up, &one, 1, &dgate, &dup);
    const auto at = [&](float g, float u) {
      float y = 0;
      SwiGlu(&g, &u, 1, &y);
      return double{y};
    };
    EXPECT_NEAR(dgate, (at(gate + step, up) - at(gate - step, up)) / (2 * step), 2e-4) << gate;
    EXPECT_NEAR(dup, (at(gate, up + step) - at(gate, up - step)) / (2 * step), 2e-4) << gate;
  }
}

}  // namespace
}  // namespace kvasir::kernels
