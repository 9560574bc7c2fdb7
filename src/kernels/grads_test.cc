// The backward pass's kernels on every target: equal bits, and close to double precision.
#include "kernels/grads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/activation.h"
#include "kernels/norm.h"
#include "kernels/random_test_values.h"
#include "kernels/scalar_math.h"
#include "kernels/targets.h"

namespace kvasir::kernels {
namespace {

constexpr std::uint64_t kSeed = 977;

std::vector<float> Random(std::size_t n, std::uint32_t stream) {
  return RandomValues(kSeed, n, stream, 2.0f);
}

// Runs body on each target and checks that the vector it returns has the same bits on all.
template <typename Body>
std::vector<float> OnEveryTarget(Body body) {
  std::vector<float> first;
  for (const Target& target : AvailableTargets()) {
    ForceTarget(target);
    const std::vector<float> result = body();
    if (first.empty()) first = result;
    EXPECT_EQ(std::memcmp(first.data(), result.data(), first.size() * sizeof(float)), 0)
        << target.name;
  }
  UseBestTarget();
  return first;
}

TEST(AddColumns, IsAChainOverRows) {
  for (std::size_t columns : {1u, 15u, 16u, 33u, 128u}) {
    const auto x = Random(7 * columns, 1);
    const auto got = OnEveryTarget([&] {
      std::vector<float> sums = Random(columns, 2);
      AddColumns(x.data(), 7, columns, 0, columns, sums.data());
      return sums;
    });
    auto expected = Random(columns, 2);
    for (std::size_t r = 0; r < 7; ++r) {
      for (std::size_t c = 0; c < columns; ++c) expected[c] += x[r * columns + c];
    }
    EXPECT_EQ(got, expected);
  }
}

TEST(AddInto, Adds) {
  const auto x = Random(37, 3);
  const auto got = OnEveryTarget([&] {
    auto y = Random(37, 4);
    AddInto(x.data(), y.size(), y.data());
    return y;
  });
  const auto y = Random(37, 4);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], y[i] + x[i]);
}

TEST(CausalSoftmax, MatchesDoublesForwardAndBackward) {
  for (std::size_t n : {1u, 16u, 20u, 128u}) {
    for (std::size_t visible : {std::size_t{1}, n / 2 + 1, n}) {
      const auto scores = Random(n, 5), upstream = Random(n, 6);
      const float scale = 0.7f;
      const auto p = OnEveryTarget([&] {
        auto row = scores;
        CausalSoftmaxRow(row.data(), visible, n, scale);
        return row;
      });
      const auto grad = OnEveryTarget([&] {
        auto row = upstream;
        CausalSoftmaxGradRow(p.data(), row.data(), visible, n, scale);
        return row;
      });
      double sum = 0, mean = 0;
      for (std::size_t i = 0; i < visible; ++i) sum += std::exp(0.7 * double{scores[i]});
      for (std::size_t i = 0; i < visible; ++i) {
        mean += std::exp(0.7 * double{scores[i]}) / sum * upstream[i];
      }
      // exp is off by about an ULP, lane sums of up to n / 16 terms by half an ULP each.
      const double bound = 6e-8 * (8 + static_cast<double>(n) / 16);
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = i < visible ? std::exp(0.7 * double{scores[i]}) / sum : 0;
        EXPECT_NEAR(p[i], expected, bound);
        EXPECT_NEAR(grad[i], expected * (upstream[i] - mean) * 0.7, 8 * bound);
      }
    }
  }
}

TEST(AdamW, MatchesDoubles) {
  AdamWStep step{1e-2f, 0.9f, 0.95f, 1e-8f, 0.1f, 1 / (1 - 0.9f), 1 / (1 - 0.95f), 0.5f};
  const auto gradient = Random(50, 7), start = Random(50, 8);
  const auto got = OnEveryTarget([&] {
    auto p = start;
    std::vector<float> m(50, 0.1f), v(50, 0.2f);
    AdamW(step, gradient.data(), p.size(), p.data(), m.data(), v.data());
    p.insert(p.end(), m.begin(), m.end());
    p.insert(p.end(), v.begin(), v.end());
    return p;
  });
  for (std::size_t i = 0; i < 50; ++i) {
    const double g = 0.5 * gradient[i];
    const double m = 0.9 * 0.1 + 0.1 * g, v = 0.95 * 0.2 + 0.05 * g * g;
    const double update = m / 0.1 / (std::sqrt(v / 0.05) + 1e-8);
    EXPECT_NEAR(got[i], start[i] * (1 - 1e-3) - 1e-2 * update, 2e-6);
    EXPECT_NEAR(got[50 + i], m, 1e-6);
    EXPECT_NEAR(got[100 + i], v, 1e-6);
  }
}

TEST(SumSquares, MatchesDoubles) {
  for (std::size_t n : {0u, 1u, 7u, 8u, 1001u}) {
    const auto x = Random(n, 9);
    double sum = 0;
    for (float v : x) sum += double{v} * v;
    EXPECT_NEAR(SumSquares(x.data(), n), sum, 1e-12 * (1 + sum));
  }
}

TEST(Dropout, DropsItsShareAndDependsOnTheKeyAlone) {
  constexpr std::size_t kCount = 80000;
  const DropoutKey key{11, 3, 2, 5};
  std::vector<float> x(kCount, 2.0f);
  Dropout(key, 6554, 1.25f, 0, kCount, x.data());  // 10 %
  std::size_t dropped = 0;
  for (float v : x) {
    EXPECT_TRUE(v == 0.0f || v == 2.5f);
    dropped += v == 0.0f;
  }
  // Six standard deviations of a binomial.
  EXPECT_NEAR(static_cast<double>(dropped), 0.1 * kCount, 6 * std::sqrt(0.09 * kCount));
  std::vector<float> part(1000, 2.0f);  // A stretch alone: the same elements.
  Dropout(key, 6554, 1.25f, 4000, part.size(), part.data());
  for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], x[4000 + i]);
  std::vector<float> other(kCount, 2.0f);
  Dropout({11, 4, 2, 5}, 6554, 1.25f, 0, kCount, other.data());
  EXPECT_NE(x, other);
  Dropout(key, 0, 1.0f, 0, kCount, other.data());  // Nothing is dropped.
}

TEST(GeluGrad, MatchesDifferencesOfTheForwardPass) {
  const auto x = Random(77, 10);
  const std::vector<float> ones(77, 1.0f);
  const auto got = OnEveryTarget([&] {
    std::vector<float> dx(77);
    GeluGrad(x.data(), ones.data(), 77, dx.data());
    return dx;
  });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto gelu = [](double v) {
      return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    };
    EXPECT_NEAR(got[i], (gelu(x[i] + 1e-5) - gelu(x[i] - 1e-5)) / 2e-5, 2e-6);
  }
}

TEST(LayerNormGrad, MatchesDifferencesInDoubles) {
  for (std::size_t n : {5u, 16u, 40u}) {
    const auto x = Random(n, 11), dy = Random(n, 12), gain = Random(n, 13), bias = Random(n, 14);
    const auto loss = [&](const std::vector<double>& v) {
      double mean = 0, variance = 0, sum = 0;
      for (double a : v) mean += a / static_cast<double>(n);
      for (double a : v) variance += (a - mean) * (a - mean) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        sum += dy[i] * ((v[i] - mean) / std::sqrt(variance + 1e-5) * gain[i] + bias[i]);
      }
      return sum;
    };
    const auto got = OnEveryTarget([&] {
      std::vector<float> y(n), dx(n, 0.0f), dgain(n, 0.0f), dbias(n, 0.0f);
      RowStats stats;
      LayerNorm(x.data(), gain.data(), bias.data(), n, 1e-5f, y.data(), &stats);
      LayerNormInputGrad({x.data(), dy.data(), gain.data(), stats, n, dx.data()});
      LayerNormParameterGrad(x.data(), dy.data(), &stats, 1, n, 0, n, dgain.data(), dbias.data());
      EXPECT_EQ(dbias, dy);
      dx.insert(dx.end(), dgain.begin(), dgain.end());
      return dx;
    });
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> v(x.begin(), x.end());
      v[i] += 1e-5;
      const double above = loss(v);
      v[i] -= 2e-5;
      EXPECT_NEAR(got[i], (above - loss(v)) / 2e-5, 2e-5) << n;
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels
