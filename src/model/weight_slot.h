// Where a tensor of a file lies in a model's memory, to be filled and read back.
#ifndef KVASIR_MODEL_WEIGHT_SLOT_H_
#define KVASIR_MODEL_WEIGHT_SLOT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// Rows first_row, first_row + 1, … of a plain array (a vector, or a table of rows) or of a packed
// matrix. Several tensors may share one: queries, keys and values become one product.
struct WeightSlot {
  base::AlignedArray<float>* plain = nullptr;
  kernels::PackedMatrix* packed = nullptr;
  std::size_t first_row = 0;
  std::size_t total_rows = 0;  // Of all tensors that share the storage; 0: this one alone.

  // Makes the storage, if this tensor is the first to come, and copies the numbers.
  void Fill(const TensorSpec& spec, std::span<const float> values);
  // The numbers as Fill got them.
  std::vector<float> Values(const TensorSpec& spec) const;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_WEIGHT_SLOT_H_
