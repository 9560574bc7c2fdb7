// Random weights for a model of any architecture: for measuring speed at any shape, and for tests.
#ifndef KVASIR_EVAL_RANDOM_WEIGHTS_H_
#define KVASIR_EVAL_RANDOM_WEIGHTS_H_

#include <cstdint>

#include "base/result.h"
#include "model/tensor_spec.h"
#include "tensor/dtype.h"

namespace kvasir::eval {

// Matrices uniform with a standard deviation of 0.05, gains near 1, biases small, tables of
// positions and tokens like matrices: large enough that attention and every bias matter to the
// logits, small enough that these stay finite. The same bits for the same tensors in the same order
// and the same seed on every machine. Single-threaded.
model::TensorSource RandomWeights(std::uint64_t seed);

// The same with matrices rounded to dtype (model/rounded_source.h); f32: as they are.
model::TensorSource RandomWeights(std::uint64_t seed, tensor::DType dtype);

// `checked` is what CheckConfig said of a config that came from flags and not from a file; numbers
// is how many such a model has. kUsage if the config is refused, or for more than 2^32 numbers.
base::Result<void> CheckRandomModel(const base::Result<void>& checked, std::uint64_t numbers);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_RANDOM_WEIGHTS_H_
