// The turns of rotary positions, there and back.
#ifndef KVASIR_TRAINING_ROTARY_TURNS_H_
#define KVASIR_TRAINING_ROTARY_TURNS_H_

#include <cstddef>

#include "base/aligned.h"
#include "model/rope_settings.h"

namespace kvasir::training {

// Immutable.
class RotaryTurns {
 public:
  RotaryTurns(const model::RopeSettings& settings, std::size_t head_dim, std::size_t context);

  // Turns the heads x [heads][head_dim] of a position in place, as the sampler does.
  void Turn(std::size_t position, std::size_t heads, float* x) const {
    Apply(Of(position), heads, x);
  }
  // The gradient of what Turn made becomes that of what it was given: it is turned back.
  void TurnBack(std::size_t position, std::size_t heads, float* dx) const {
    Apply(Of(position) + 2 * pairs_, heads, dx);
  }

  // Floats that the tables of a context take.
  static std::size_t Floats(const model::RopeSettings& settings, std::size_t context) {
    return context * 2 * settings.dimensions;
  }

 private:
  const float* Of(std::size_t position) const { return turns_.data() + position * 4 * pairs_; }
  void Apply(const float* turn, std::size_t heads, float* x) const;

  const kernels::RopePairing pairing_;
  const std::size_t pairs_;
  const std::size_t head_dim_;
  // [context][2][2][pairs]: cosines and sines, then cosines and negated sines.
  base::AlignedArray<float> turns_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_ROTARY_TURNS_H_
