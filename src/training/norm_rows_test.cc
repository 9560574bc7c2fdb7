#include "training/norm_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/random_test_values.h"

namespace kvasir::training {
namespace {

constexpr std::size_t kRows = 11, kWidth = 35;

struct Norm {
  std::vector<float> y, dx, dgain, dbias;
};

// Σ y · dy has these gradients; dx and the parameters' begin at numbers that are not 0.
Norm BothWays(NormKind kind, std::size_t threads, const std::vector<float>& x,
              const std::vector<float>& gain, const std::vector<float>& dy) {
  const std::vector<float> bias(kWidth, 0.25f);
  Norm norm = {std::vector<float>(x.size()), std::vector<float>(x.size(), 0.5f),
               std::vector<float>(kWidth, 0.5f), std::vector<float>(kWidth, 0.5f)};
  std::vector<kernels::RowStats> stats(kRows);
  NormRows rows(kind, kWidth, 1e-3f);
  rows.Bind({gain.data(), norm.dgain.data()},
            kind == NormKind::kLayerNorm ? Parameter{bias.data(), norm.dbias.data()} : Parameter{});
  base::ThreadTeam team(threads);
  team.Run([&](Member& member) {
    rows.Forward(member, x.data(), kRows, norm.y.data(), stats.data());
    member.Barrier();
    rows.Backward(member, x.data(), dy.data(), kRows, stats.data(), norm.dx.data());
  });
  return norm;
}

class NormRowsTest : public testing::TestWithParam<NormKind> {
 protected:
  std::vector<float> x_ = kernels::RandomValues(13, kRows* kWidth, 1);
  std::vector<float> gain_ = kernels::RandomValues(13, kWidth, 2);
  const std::vector<float> dy_ = kernels::RandomValues(13, kRows* kWidth, 3);

  double Sum() const {
    const Norm norm = BothWays(GetParam(), 1, x_, gain_, dy_);
    double sum = 0;
    for (std::size_t i = 0; i < norm.y.size(); ++i) sum += double{norm.y[i]} * dy_[i];
    return sum;
  }
  double Slope(float& number) const {
    constexpr float kStep = 0x1p-8f;
    const float before = number;
    number = before + kStep;
    const double above = Sum();
    number = before - kStep;
    const double below = Sum();
    number = before;
    return (above - below) / (2 * kStep);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, NormRowsTest,
                         testing::Values(NormKind::kLayerNorm, NormKind::kRmsNorm));

TEST_P(NormRowsTest, GradientsMatchFiniteDifferencesAndAreAdded) {
  const Norm norm = BothWays(GetParam(), 1, x_, gain_, dy_);
  for (std::size_t i = 0; i < x_.size(); i += 7) {
    EXPECT_NEAR(norm.dx[i] - 0.5, Slope(x_[i]), 2e-3) << i;
  }
  for (std::size_t c = 0; c < kWidth; ++c) {
    EXPECT_NEAR(norm.dgain[c] - 0.5, Slope(gain_[c]), 2e-3) << c;
    float sum = 0.5f;
    for (std::size_t r = 0; r < kRows; ++r) sum += dy_[r * kWidth + c];
    EXPECT_EQ(norm.dbias[c], GetParam() == NormKind::kLayerNorm ? sum : 0.5f) << c;
  }
}

TEST_P(NormRowsTest, ThreadsGiveTheSameBits) {
  const Norm one = BothWays(GetParam(), 1, x_, gain_, dy_);
  for (const std::size_t threads : {2u, 5u}) {
    const Norm more = BothWays(GetParam(), threads, x_, gain_, dy_);
    EXPECT_TRUE(kernels::SameBits(one.y, more.y));
    EXPECT_TRUE(kernels::SameBits(one.dx, more.dx));
    EXPECT_TRUE(kernels::SameBits(one.dgain, more.dgain));
    EXPECT_TRUE(kernels::SameBits(one.dbias, more.dbias));
  }
}

}  // namespace
}  // namespace kvasir::training
