#include "training/rotary_turns.h"

#include <algorithm>
#include <vector>

namespace kvasir::training {

RotaryTurns::RotaryTurns(const model::RopeSettings& settings, std::size_t head_dim,
                         std::size_t context)
    : pairing_(settings.pairing),
      pairs_(settings.dimensions / 2),
      head_dim_(head_dim),
      turns_(Floats(settings, context)) {
  const std::vector<double> frequencies = model::RopeFrequencies(settings);
  for (std::size_t position = 0; position < context; ++position) {
    float* turn = turns_.data() + position * 4 * pairs_;
    kernels::RopeTurn(frequencies.data(), pairs_, position, turn);
    std::copy_n(turn, pairs_, turn + 2 * pairs_);
    for (std::size_t i = 0; i < pairs_; ++i) turn[3 * pairs_ + i] = -turn[pairs_ + i];
  }
}

void RotaryTurns::Apply(const float* turn, std::size_t heads, float* x) const {
  kernels::RopeArgs args;
  args.turn = turn;
  args.pairs = pairs_;
  args.pairing = pairing_;
  args.heads = heads;
  args.head_stride = head_dim_;
  args.x = x;
  kernels::Rope(args);
}

}  // namespace kvasir::training
