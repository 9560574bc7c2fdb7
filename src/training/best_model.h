// The held-out text that a run is judged by, and the best model on it so far.
#ifndef KVASIR_TRAINING_BEST_MODEL_H_
#define KVASIR_TRAINING_BEST_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "base/aligned.h"
#include "base/token_id.h"

namespace kvasir::training {

// Single-threaded. Which model is the best depends on the text and on when it is measured, so both
// belong to a run as its settings do, and checkpoints hold them with the model itself.
// Invariant: step is 0 (none measured yet), or parameters are those of that step.
struct BestModel {
  std::span<const base::TokenId> held_out;  // Empty: none is measured; a run's result is its last.
  std::uint64_t eval_every = 250;           // Steps between measurements.
  std::uint64_t step = 0;                   // Steps done by the best; 0: none measured yet.
  double loss = std::numeric_limits<double>::infinity();  // Its nats per token of held_out.
  base::AlignedArray<float> parameters;                   // Flat, of the trainer's layout.

  bool measured() const { return step > 0; }

  // Takes the memory for parameters, so that a run without it does not end at its first best.
  void Reserve(std::size_t floats) {
    if (parameters.size() != floats) parameters = base::AlignedArray<float>(floats);
  }

  // Keeps a copy if the loss is below all before; whether it is. Requires Reserve.
  bool Offer(std::uint64_t done, double nll, std::span<const float> flat) {
    if (!(nll < loss)) return false;
    step = done;
    loss = nll;
    std::copy(flat.begin(), flat.end(), parameters.data());
    return true;
  }
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_BEST_MODEL_H_
