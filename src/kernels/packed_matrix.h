// Weight matrices in the order in which products read them.
#ifndef KVASIR_KERNELS_PACKED_MATRIX_H_
#define KVASIR_KERNELS_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/aligned.h"
#include "base/thread_team.h"
#include "tensor/dtype.h"

namespace kvasir::kernels {

inline constexpr std::size_t kPanelOutputs = 16;
inline constexpr std::size_t kPairPanels = 2;
// Of a rounded matrix: numbers along k that share a scale (R6).
inline constexpr std::size_t kBlockSteps = 32;

constexpr bool IsRoundedType(tensor::DType dtype) {
  return dtype == tensor::DType::kQ8_0 || dtype == tensor::DType::kQ4_0;
}

// A matrix W [n, k] packed for products x · Wᵀ in panels of 16 outputs, the last panel padded with
// zeros. Numbers are f32, or rounded as in the blocks of Q8_0 or Q4_0: then k is a multiple of 32.
//
// f32: [ceil(n/16)][k][16]; one k step of a panel is one cache line.
// Rounded: panels lie in pairs, [ceil(n/32)][k/32][2] blocks, so that a pair, which a product takes
// at once, is one stream of whole cache lines. A block is 16 scales (f16), then bytes. Of Q8_0
// [32][16], a number each. Of Q4_0 [16][16]: for steps 2i and 2i + 1 of an output q(2i) + 8 in the
// low nibble and q(2i + 1) as two's complement in the high one.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Requires f32 or a rounded type.
  PackedMatrix(std::size_t n, std::size_t k, tensor::DType dtype = tensor::DType::kF32);

  // Another shape, of f32; keeps the storage when it is large enough. Contents undefined, padding
  // included.
  void Reshape(std::size_t n, std::size_t k) {
    n_ = n;
    k_ = k;
    dtype_ = tensor::DType::kF32;
    const std::size_t floats = panel_count() * kPanelOutputs * k;
    if (floats > panels_.size()) panels_ = base::AlignedArray<float>(floats);
  }

  std::size_t n() const { return n_; }
  std::size_t k() const { return k_; }
  tensor::DType dtype() const { return dtype_; }
  bool rounded() const { return dtype_ != tensor::DType::kF32; }
  std::size_t panel_count() const { return (n_ + kPanelOutputs - 1) / kPanelOutputs; }
  // Padding included.
  std::size_t bytes() const {
    const std::size_t step = rounded() ? kPairPanels * kPanelOutputs : kPanelOutputs;
    return (n_ + step - 1) / step * step * tensor::BytesOf(dtype_, k_);
  }
  // By how many bytes the n · k numbers are shorter than in f32.
  std::size_t saved_bytes() const {
    return n_ * (k_ * sizeof(float) - tensor::BytesOf(dtype_, k_));
  }

  // Of f32.
  const float* panel(std::size_t p) const { return panels_.data() + p * k_ * kPanelOutputs; }
  float* panel(std::size_t p) { return panels_.data() + p * k_ * kPanelOutputs; }

  // Of a rounded matrix.
  std::size_t block_bytes() const { return kPanelOutputs * tensor::BlockBytes(dtype_); }
  std::size_t block_count() const { return k_ / kBlockSteps; }  // Along k.
  const std::byte* block(std::size_t p, std::size_t b) const {
    const std::size_t pair_block = p / kPairPanels * block_count() + b;
    return blocks_.data() + (pair_block * kPairPanels + p % kPairPanels) * block_bytes();
  }
  std::byte* block(std::size_t p, std::size_t b) {
    return const_cast<std::byte*>(std::as_const(*this).block(p, b));
  }

 private:
  std::size_t n_ = 0;
  std::size_t k_ = 0;
  tensor::DType dtype_ = tensor::DType::kF32;
  base::AlignedArray<float> panels_;  // One of the two is empty.
  base::AlignedArray<std::byte> blocks_;
};

// Where element (n, k) of an unpacked matrix lies: data[n · n_stride + k · k_stride].
struct PackSource {
  const float* data = nullptr;
  std::size_t n_stride = 0;
  std::size_t k_stride = 0;
};

// Fills the given panels of `out`, of f32, from source.
void PackPanels(const PackSource& source, PackedMatrix& out, base::IndexRange panels);

// Packs row-major weights [n, k] whole, as f32.
PackedMatrix PackWeights(const float* weights, std::size_t n, std::size_t k);

// Fills rows first_row, first_row + 1, … of a rounded matrix from blocks of its own type as GGUF
// has them, [rows][k/32].
void PackBlocks(std::span<const std::byte> rows, std::size_t first_row, PackedMatrix& out);

// The k numbers of a row as f32: of a rounded matrix scale · q, which is exact.
void UnpackRow(const PackedMatrix& matrix, std::size_t row, float* out);

// The same numbers as f32, exactly.
PackedMatrix Widened(const PackedMatrix& matrix);

// Parts of element (row, k) of a rounded matrix, whose value is scale · q.
std::int32_t RoundedNumber(const PackedMatrix& matrix, std::size_t row, std::size_t k);
float RoundedScale(const PackedMatrix& matrix, std::size_t row, std::size_t block);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_PACKED_MATRIX_H_
