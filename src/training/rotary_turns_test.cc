#include "training/rotary_turns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/random_test_values.h"

namespace kvasir::training {
namespace {

constexpr std::size_t kHeads = 3, kDim = 10, kContext = 40;

model::RopeSettings Settings(kernels::RopePairing pairing) {
  return {.pairing = pairing, .dimensions = 6, .base = 50};
}

// Turning back is the transpose of turning: g · turn(x) = back(g) · x. And of a rotation that is
// its inverse.
TEST(RotaryTurns, TurningBackIsTheGradientOfTurning) {
  for (const auto pairing : {kernels::RopePairing::kNeighbours, kernels::RopePairing::kHalves}) {
    const RotaryTurns turns(Settings(pairing), kDim, kContext);
    for (const std::size_t position : {0u, 1u, 17u, 39u}) {
      const auto x = kernels::RandomValues(9, kHeads * kDim, 1);
      const auto g = kernels::RandomValues(9, kHeads * kDim, 2);
      auto turned = x, back = g, undone = x;
      turns.Turn(position, kHeads, turned.data());
      turns.TurnBack(position, kHeads, back.data());
      turns.Turn(position, kHeads, undone.data());
      turns.TurnBack(position, kHeads, undone.data());
      double with_turned = 0, with_back = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        with_turned += double{g[i]} * turned[i];
        with_back += double{back[i]} * x[i];
        // Four roundings there and four back, of numbers below √2.
        EXPECT_NEAR(undone[i], x[i], 8 * 1.5 * 0x1p-24) << position;
      }
      EXPECT_NEAR(with_turned, with_back, 30 * 8 * 1.5 * 0x1p-24) << position;
      EXPECT_EQ(position == 0, kernels::SameBits(turned, x));
      for (std::size_t head = 0; head < kHeads; ++head) {  // Channels that do not turn.
        for (std::size_t d = 6; d < kDim; ++d)
          EXPECT_EQ(turned[head * kDim + d], x[head * kDim + d]);
      }
    }
  }
}

TEST(RotaryTurns, HasTheSamplersBits) {
  const model::RopeSettings settings = Settings(kernels::RopePairing::kNeighbours);
  const RotaryTurns turns(settings, kDim, kContext);
  const std::vector<double> frequencies = model::RopeFrequencies(settings);
  auto x = kernels::RandomValues(9, kDim, 3);
  auto expected = x;
  float turn[6];
  kernels::RopeTurn(frequencies.data(), 3, 23, turn);
  kernels::ReferenceRope(
      {.turn = turn, .pairs = 3, .heads = 1, .head_stride = kDim, .x = expected.data()});
  turns.Turn(23, 1, x.data());
  EXPECT_TRUE(kernels::SameBits(x, expected));
}

}  // namespace
}  // namespace kvasir::training
