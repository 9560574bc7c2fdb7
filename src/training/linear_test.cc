#include "training/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/random_test_values.h"

namespace kvasir::training {
namespace {

using kernels::RandomValues;
using kernels::SameBits;

// Every element is the chain of rule R1 or R8, whoever computes it, and gradients go on from what
// is there.
TEST(Linear, ProductsAndGradientsAreTheirChains) {
  constexpr std::size_t kRows = 21, kOutputs = 35, kInputs = 19;
  constexpr std::size_t kStride = kOutputs + 3;  // Of dy, as padded logits have it.
  const auto x = RandomValues(5, kRows * kInputs, 1), w = RandomValues(5, kOutputs * kInputs, 2);
  const auto bias = RandomValues(5, kOutputs, 3), dy = RandomValues(5, kRows * kStride, 4);
  const auto dw_before = RandomValues(5, kOutputs * kInputs, 5);
  const auto db_before = RandomValues(5, kOutputs, 6);
  std::vector<float> y(kRows * kOutputs), dx(kRows * kInputs), dw = dw_before, db = db_before;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t n = 0; n < kOutputs; ++n) {
      float sum = 0;
      for (std::size_t k = 0; k < kInputs; ++k) {
        sum = std::fma(x[r * kInputs + k], w[n * kInputs + k], sum);
      }
      y[r * kOutputs + n] = sum + bias[n];
    }
    for (std::size_t k = 0; k < kInputs; ++k) {
      float sum = 0;
      for (std::size_t n = 0; n < kOutputs; ++n) {
        sum = std::fma(dy[r * kStride + n], w[n * kInputs + k], sum);
      }
      dx[r * kInputs + k] = sum;
    }
  }
  for (std::size_t n = 0; n < kOutputs; ++n) {
    for (std::size_t r = 0; r < kRows; ++r) {
      const float d = dy[r * kStride + n];
      db[n] += d;
      for (std::size_t k = 0; k < kInputs; ++k) {
        dw[n * kInputs + k] = std::fma(d, x[r * kInputs + k], dw[n * kInputs + k]);
      }
    }
  }
  for (const std::size_t threads : {1u, 2u, 5u}) {
    std::vector<float> got_y(y.size()), got_dx(dx.size()), got_dw = dw_before, got_db = db_before;
    Linear linear(kOutputs, kInputs);
    linear.Bind({w.data(), got_dw.data()}, {bias.data(), got_db.data()});
    kernels::PackedMatrix packed(kInputs, kRows);
    base::ThreadTeam team(threads);
    team.Run([&](Member& member) {
      linear.Pack(member);
      PackRows(member, x.data(), kRows, kInputs, packed);
      kernels::MatmulShare(linear.Product(x.data(), got_y.data()), kRows, member);
      kernels::MatmulShare(linear.InputGrad(dy.data(), kStride, got_dx.data()), kRows, member);
      linear.AddGradients(member, dy.data(), kStride, kRows, packed);
    });
    EXPECT_TRUE(SameBits(got_y, y)) << threads;
    EXPECT_TRUE(SameBits(got_dx, dx)) << threads;
    EXPECT_TRUE(SameBits(got_dw, dw)) << threads;
    EXPECT_TRUE(SameBits(got_db, db)) << threads;
  }
}

TEST(Linear, NeedsNoBias) {
  const std::vector<float> w = {1, 2, 3, 4}, x = {5, 6};
  std::vector<float> dw(4), y(2);
  Linear linear(2, 2);
  linear.Bind({w.data(), dw.data()}, {});
  kernels::PackedMatrix packed(2, 1);
  base::ThreadTeam team(1);
  team.Run([&](Member& member) {
    linear.Pack(member);
    PackRows(member, x.data(), 1, 2, packed);
    kernels::MatmulShare(linear.Product(x.data(), y.data()), 1, member);
    linear.AddGradients(member, y.data(), 2, 1, packed);
  });
  EXPECT_EQ(y, (std::vector<float>{17, 39}));
  EXPECT_EQ(dw, (std::vector<float>{85, 102, 195, 234}));
}

}  // namespace
}  // namespace kvasir::training
