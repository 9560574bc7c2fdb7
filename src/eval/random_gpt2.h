// A GPT-2 model with random weights: for measuring speed at any shape, and for tests.
#ifndef KVASIR_EVAL_RANDOM_GPT2_H_
#define KVASIR_EVAL_RANDOM_GPT2_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/gpt2_config.h"
#include "model/gpt2_model.h"

namespace kvasir::eval {

// Weights as random_weights.h has them, matrices of f32 or of a rounded type. kUsage for a config
// that CheckConfig refuses, or of more than 2^32 parameters. Thread-safe.
base::Result<std::unique_ptr<model::Gpt2Model>> MakeRandomGpt2(
    const model::Gpt2Config& config, std::uint64_t seed, tensor::DType dtype = tensor::DType::kF32);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_RANDOM_GPT2_H_
