// A model of the Llama family with random weights: for measuring speed at any shape, and for tests.
#ifndef KVASIR_EVAL_RANDOM_LLAMA_H_
#define KVASIR_EVAL_RANDOM_LLAMA_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/llama_config.h"
#include "model/llama_model.h"

namespace kvasir::eval {

// Weights as random_weights.h has them, matrices of f32 or of a rounded type. kUsage for a config
// that CheckConfig refuses, or of more than 2^32 parameters. Thread-safe.
base::Result<std::unique_ptr<model::LlamaModel>> MakeRandomLlama(
    const model::LlamaConfig& config, std::uint64_t seed,
    tensor::DType dtype = tensor::DType::kF32);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_RANDOM_LLAMA_H_
