// The weights of a finished model, for a run that goes on from them.
#ifndef KVASIR_TRAINING_START_WEIGHTS_H_
#define KVASIR_TRAINING_START_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/model.h"
#include "model/tensor_spec.h"
#include "training/model_config.h"
#include "training/trainer.h"

namespace kvasir::training {

// Reads from a model that must outlive it.
struct StartWeights {
  ModelConfig config;
  std::function<std::vector<float>(const model::TensorSpec&)> values;  // Of a tensor, in f32.

  // Of all numbers, in the order of the tensors; never 0: TrainOptions::start_weights.
  std::uint64_t Hash() const;
};

// Nothing for a model of an architecture or family that the trainer does not know.
std::optional<StartWeights> StartWeightsOf(const model::Model& model);

// Makes the weights the trainer's own. Requires a trainer of this config.
void TakeWeights(const StartWeights& weights, Trainer& trainer);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_START_WEIGHTS_H_
