#include "model/weight_slot.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/convert.h"

namespace kvasir::model {

base::Result<void> WeightSlot::Load(const TensorSpec& spec, const TensorSource& source) const {
  if (packed) {
    KV_TRY(const auto blocks, source.BlocksOf(spec));
    if (blocks) {
      FillBlocks(spec, *blocks);
      return base::Success();
    }
  }
  KV_TRY(const std::span<const float> values, source(spec));
  Fill(spec, values);
  return base::Success();
}

void WeightSlot::Fill(const TensorSpec& spec, std::span<const float> values) const {
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
  if (packed->rounded()) *packed = kernels::Widened(*packed);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = first_row + row;
    float* to = packed->panel(at / kernels::kPanelOutputs) + at % kernels::kPanelOutputs;
    for (std::size_t column = 0; column < columns; ++column) {
      to[column * kernels::kPanelOutputs] = values[row * columns + column];
    }
  }
}

void WeightSlot::FillBlocks(const TensorSpec& spec, const TensorBlocks& blocks) const {
  const std::size_t rows = spec.shape[0];
  const std::size_t count = spec.shape.ElementCount().value();
  const std::size_t columns = count / rows;
  const std::size_t total = total_rows == 0 ? rows : total_rows;
  KV_CHECK(packed && first_row + rows <= total);
  if (packed->n() != total || packed->k() != columns) {
    *packed = kernels::PackedMatrix(total, columns, blocks.dtype);
  }
  if (packed->dtype() == blocks.dtype) {
    kernels::PackBlocks(blocks.bytes, first_row, *packed);
    return;
  }
  std::vector<float> values(count);
  tensor::ConvertToF32(blocks.dtype, blocks.bytes, values);
  WeightSlot matrix = *this;
  matrix.plain = nullptr;
  matrix.Fill(spec, values);
}

std::vector<float> WeightSlot::Values(const TensorSpec& spec) const {
  std::vector<float> values(spec.shape.ElementCount().value());
  const std::size_t rows = spec.shape[0];
  const std::size_t columns = values.size() / rows;
  if (plain && plain->size() != 0) {
    std::copy_n(plain->data() + first_row * columns, values.size(), values.begin());
    return values;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    kernels::UnpackRow(*packed, first_row + row, values.data() + row * columns);
  }
  return values;
}

}  // namespace kvasir::model
