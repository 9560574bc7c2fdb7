// A GPT-2 model with random weights: for measuring speed at any shape, and for tests.
#ifndef KVASIR_EVAL_RANDOM_GPT2_H_
#define KVASIR_EVAL_RANDOM_GPT2_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/gpt2_config.h"
#include "model/gpt2_model.h"

namespace kvasir::eval {

// Matrices uniform with a standard deviation of 0.05, gains near 1, biases small, positions and
// tokens like matrices: large enough that attention and every bias matter to the logits, small
// enough that these stay finite. The same bits for the same config and seed on every machine.
// kUsage for a config that CheckConfig refuses, or of more than 2^32 parameters. Thread-safe.
base::Result<std::unique_ptr<model::Gpt2Model>> MakeRandomGpt2(const model::Gpt2Config& config,
                                                               std::uint64_t seed);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_RANDOM_GPT2_H_
