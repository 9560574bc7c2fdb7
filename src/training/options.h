// Settings of a training run.
#ifndef KVASIR_TRAINING_OPTIONS_H_
#define KVASIR_TRAINING_OPTIONS_H_

#include <cstdint>
#include <string>

#include "base/result.h"
#include "training/schedule.h"

namespace kvasir::training {

struct TrainOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 1000;
  std::uint64_t batch = 32;       // Sequences of a step, all shards together.
  std::uint64_t shards = 4;       // R8: parts of the batch whose gradients are added in order.
  std::uint64_t micro_batch = 8;  // Sequences computed together; changes no bit.
  double learning_rate = 1e-3;    // At the end of the warm-up.
  double final_rate = 0.05;       // Share of it that the schedule ends at.
  std::uint64_t warmup = 100;     // Steps.
  Schedule schedule = Schedule::kCosine;
  double decay_share = 0.2;  // Of the steps, at their end: Schedule::kWsd's decay.
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;     // Largest gradient norm; 0: no clipping.
  double dropout = 0.0;  // Probability.
  // SPEC of the cache that the model is trained for (TrainedPolicy); empty: the full one.
  std::string kv = {};
  // What its rounding errors are multiplied by in steps; evaluations have them as they are.
  double kv_error = 1;
  bool recompute = false;  // Activations, instead of keeping them; changes no bit.
  // Names the weights that the run starts from (StartWeights::Hash); 0: those drawn by the seed.
  std::uint64_t start_weights = 0;
};

// kUsage naming the flag, its value and what is allowed.
base::Result<void> CheckOptions(const TrainOptions& options);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_OPTIONS_H_
