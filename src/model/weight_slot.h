// Where a tensor of a file lies in a model's memory, to be filled and read back.
#ifndef KVASIR_MODEL_WEIGHT_SLOT_H_
#define KVASIR_MODEL_WEIGHT_SLOT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "kernels/packed_matrix.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// Rows first_row, first_row + 1, … of a plain array (a vector, or a table of rows) or of a packed
// matrix. Several tensors may share one: queries, keys and values become one product. A matrix is
// rounded if all its tensors come in blocks of one type; a mixed one is f32, which is exact.
struct WeightSlot {
  base::AlignedArray<float>* plain = nullptr;
  kernels::PackedMatrix* packed = nullptr;  // With plain: for blocks alone.
  std::size_t first_row = 0;
  std::size_t total_rows = 0;  // Of all tensors that share the storage; 0: this one alone.

  // Fills the slot from the source: with blocks, where it has them and a packed matrix is here to
  // take them, else with numbers. Passes on the source's Errors.
  base::Result<void> Load(const TensorSpec& spec, const TensorSource& source) const;
  // Makes the storage, if this tensor is the first to come, and copies the numbers.
  void Fill(const TensorSpec& spec, std::span<const float> values) const;
  void FillBlocks(const TensorSpec& spec, const TensorBlocks& blocks) const;
  // The numbers that the slot holds: as Fill got them, or what the blocks mean.
  std::vector<float> Values(const TensorSpec& spec) const;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_WEIGHT_SLOT_H_
