#include "kernels/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace kvasir::kernels {
namespace {

using tensor::DType;

constexpr std::size_t kScaleBytes = 2 * kPanelOutputs;

// The byte that holds number `step` of a block, for one output.
std::size_t ByteOffset(DType dtype, std::size_t step, std::size_t lane) {
  const std::size_t line = dtype == DType::kQ8_0 ? step : step / 2;
  return kScaleBytes + line * kPanelOutputs + lane;
}

// Number `step` of a block as GGUF has it.
std::int32_t NumberInFile(DType dtype, const std::byte* block, std::size_t step) {
  if (dtype == DType::kQ8_0) return static_cast<std::int8_t>(block[2 + step]);
  const auto byte = static_cast<unsigned>(block[2 + step % 16]);
  return static_cast<std::int32_t>(step < 16 ? byte & 15u : byte >> 4) - 8;
}

}  // namespace

PackedMatrix::PackedMatrix(std::size_t n, std::size_t k, DType dtype)
    : n_(n), k_(k), dtype_(dtype) {
  if (dtype == DType::kF32) {
    panels_ = base::AlignedArray<float>(panel_count() * kPanelOutputs * k);
    return;
  }
  KV_CHECK(IsRoundedType(dtype) && k % kBlockSteps == 0);
  blocks_ = base::AlignedArray<std::byte>(bytes());
}

void PackPanels(const PackSource& source, PackedMatrix& out, base::IndexRange panels) {
  KV_DCHECK(!out.rounded());
  for (std::size_t p = panels.begin; p < panels.end; ++p) {
    float* panel = out.panel(p);
    const std::size_t lanes = std::min<std::size_t>(16, out.n() - p * 16);
    const float* from = source.data + p * 16 * source.n_stride;
    if (source.n_stride == 1 && lanes == kPanelOutputs) {
      for (std::size_t k = 0; k < out.k(); ++k) {
        std::memcpy(panel + k * 16, from + k * source.k_stride, 16 * sizeof(float));
      }
    } else if (source.n_stride == 1) {
      for (std::size_t k = 0; k < out.k(); ++k) {
        for (std::size_t lane = 0; lane < lanes; ++lane)
          panel[k * 16 + lane] = from[k * source.k_stride + lane];
      }
    } else {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const float* row = from + lane * source.n_stride;
        for (std::size_t k = 0; k < out.k(); ++k) panel[k * 16 + lane] = row[k * source.k_stride];
      }
    }
  }
}

PackedMatrix PackWeights(const float* weights, std::size_t n, std::size_t k) {
  PackedMatrix packed(n, k);
  PackPanels({weights, k, 1}, packed, {0, packed.panel_count()});
  return packed;
}

void PackBlocks(std::span<const std::byte> rows, std::size_t first_row, PackedMatrix& out) {
  const std::size_t row_bytes = tensor::BytesOf(out.dtype(), out.k());
  const std::size_t count = rows.size() / row_bytes;
  KV_CHECK(out.rounded() && rows.size() == count * row_bytes && first_row + count <= out.n());
  const std::byte* from = rows.data();
  for (std::size_t row = first_row; row < first_row + count; ++row) {
    const std::size_t lane = row % kPanelOutputs;
    for (std::size_t b = 0; b < out.block_count(); ++b) {
      std::byte* to = out.block(row / kPanelOutputs, b);
      std::memcpy(to + 2 * lane, from, 2);
      for (std::size_t step = 0; step < kBlockSteps; ++step) {
        const int q = NumberInFile(out.dtype(), from, step);
        std::byte& byte = to[ByteOffset(out.dtype(), step, lane)];
        if (out.dtype() == DType::kQ8_0) {
          byte = static_cast<std::byte>(q);
        } else if (step % 2 == 0) {
          byte = static_cast<std::byte>(q + 8);
        } else {
          byte |= static_cast<std::byte>(q * 16);
        }
      }
      from += tensor::BlockBytes(out.dtype());
    }
  }
}

std::int32_t RoundedNumber(const PackedMatrix& matrix, std::size_t row, std::size_t k) {
  const std::size_t step = k % kBlockSteps;
  const auto byte = static_cast<std::int8_t>(matrix.block(
      row / kPanelOutputs, k / kBlockSteps)[ByteOffset(matrix.dtype(), step, row % kPanelOutputs)]);
  if (matrix.dtype() == DType::kQ8_0) return byte;
  return step % 2 == 0 ? (byte & 15) - 8 : byte >> 4;
}

float RoundedScale(const PackedMatrix& matrix, std::size_t row, std::size_t block) {
  std::uint16_t half;
  std::memcpy(&half, matrix.block(row / kPanelOutputs, block) + 2 * (row % kPanelOutputs), 2);
  return tensor::F16ToF32(half);
}

void UnpackRow(const PackedMatrix& matrix, std::size_t row, float* out) {
  if (!matrix.rounded()) {
    const float* from = matrix.panel(row / kPanelOutputs) + row % kPanelOutputs;
    for (std::size_t k = 0; k < matrix.k(); ++k) out[k] = from[k * kPanelOutputs];
    return;
  }
  for (std::size_t b = 0; b < matrix.block_count(); ++b) {
    const float scale = RoundedScale(matrix, row, b);
    for (std::size_t k = b * kBlockSteps; k < (b + 1) * kBlockSteps; ++k) {
      out[k] = scale * static_cast<float>(RoundedNumber(matrix, row, k));
    }
  }
}

PackedMatrix Widened(const PackedMatrix& matrix) {
  PackedMatrix wide(matrix.n(), matrix.k());
  base::AlignedArray<float> row(matrix.k());
  for (std::size_t n = 0; n < matrix.n(); ++n) {
    UnpackRow(matrix, n, row.data());
    float* to = wide.panel(n / kPanelOutputs) + n % kPanelOutputs;
    for (std::size_t k = 0; k < matrix.k(); ++k) to[k * kPanelOutputs] = row[k];
  }
  return wide;
}

}  // namespace kvasir::kernels
