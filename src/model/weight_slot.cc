#include "model/weight_slot.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::model {
namespace {

// Element (row, column) of a packed matrix: kernels/matmul.h.
template <typename Matrix>
auto& At(Matrix& matrix, std::size_t row, std::size_t column) {
  return matrix.panel(row / 16)[column * 16 + row % 16];
}

}  // namespace

void WeightSlot::Fill(const TensorSpec& spec, std::span<const float> values) {
  KV_CHECK(values.size() == spec.shape.ElementCount().value());
  const std::size_t rows = spec.shape[0];
  const std::size_t columns = values.size() / rows;
  const std::size_t total = total_rows == 0 ? rows : total_rows;
  KV_CHECK(first_row + rows <= total);
  if (plain) {
    if (plain->size() != total * columns) *plain = base::AlignedArray<float>(total * columns);
    std::copy(values.begin(), values.end(), plain->data() + first_row * columns);
    return;
  }
  if (packed->n() != total || packed->k() != columns) {
    *packed = kernels::PackedMatrix(total, columns);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      At(*packed, first_row + row, column) = values[row * columns + column];
    }
  }
}

std::vector<float> WeightSlot::Values(const TensorSpec& spec) const {
  std::vector<float> values(spec.shape.ElementCount().value());
  const std::size_t rows = spec.shape[0];
  const std::size_t columns = values.size() / rows;
  if (plain) {
    std::copy_n(plain->data() + first_row * columns, values.size(), values.begin());
    return values;
  }
  const kernels::PackedMatrix& matrix = *packed;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      values[row * columns + column] = At(matrix, first_row + row, column);
    }
  }
  return values;
}

}  // namespace kvasir::model
