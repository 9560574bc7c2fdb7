// The tensors of a model by name and shape, and where their numbers come from.
#ifndef KVASIR_MODEL_TENSOR_SPEC_H_
#define KVASIR_MODEL_TENSOR_SPEC_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/shape.h"

namespace kvasir::model {

struct TensorSpec {
  std::string name;     // As in GGUF.
  tensor::Shape shape;  // Row-major; a matrix is [outputs, inputs].
};

// Numbers in all these tensors together, whose counts must be checked.
inline std::uint64_t CountNumbers(std::span<const TensorSpec> specs) {
  std::uint64_t count = 0;
  for (const TensorSpec& spec : specs) count += spec.shape.ElementCount().value();
  return count;
}

// Gives the f32 numbers of a tensor, row-major. The span need only live until the next call.
using TensorSource = std::function<base::Result<std::span<const float>>(const TensorSpec& spec)>;

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_TENSOR_SPEC_H_
