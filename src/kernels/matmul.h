// Matrix products under rule R1: every output element is one chain of fused multiply-adds over k,
// ascending, so its bits do not depend on the number of rows, the tiling, threads or vector width.
#ifndef KVASIR_KERNELS_MATMUL_H_
#define KVASIR_KERNELS_MATMUL_H_

#include <cstddef>

#include "base/aligned.h"
#include "base/thread_team.h"

namespace kvasir::kernels {

// A matrix W [n, k] packed for products x · Wᵀ: panels of 16 outputs, [ceil(n/16)][k][16], the last
// panel padded with zeros. One k step of a panel is one cache line.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(std::size_t n, std::size_t k) : n_(n), k_(k), panels_((n + 15) / 16 * 16 * k) {}

  // Another shape; keeps the storage when it is large enough. Contents undefined, padding included.
  void Reshape(std::size_t n, std::size_t k) {
    n_ = n;
    k_ = k;
    const std::size_t floats = panel_count() * 16 * k;
    if (floats > panels_.size()) panels_ = base::AlignedArray<float>(floats);
  }

  std::size_t n() const { return n_; }
  std::size_t k() const { return k_; }
  std::size_t panel_count() const { return (n_ + 15) / 16; }
  std::size_t bytes() const { return panel_count() * 16 * k_ * sizeof(float); }
  const float* panel(std::size_t p) const { return panels_.data() + p * k_ * 16; }
  float* panel(std::size_t p) { return panels_.data() + p * k_ * 16; }

 private:
  std::size_t n_ = 0;
  std::size_t k_ = 0;
  base::AlignedArray<float> panels_;
};

// Where element (n, k) of an unpacked matrix lies: data[n · n_stride + k · k_stride].
struct PackSource {
  const float* data = nullptr;
  std::size_t n_stride = 0;
  std::size_t k_stride = 0;
};

// Fills the given panels of `out` from source.
void PackPanels(const PackSource& source, PackedMatrix& out, base::IndexRange panels);

// Packs row-major weights [n, k] whole.
PackedMatrix PackWeights(const float* weights, std::size_t n, std::size_t k);

// out[m][n] = (acc[m][n] + bias[n]) + residual[m][n], acc = Σ_k a[m][k] · w[n][k] as one chain.
struct MatmulArgs {
  const float* a =
      nullptr;  // element (m, k) at a[m · a_row_stride + k · a_k_stride]; one of them 1
  std::size_t a_row_stride = 0;
  std::size_t a_k_stride = 1;
  const PackedMatrix* w = nullptr;
  const float* bias = nullptr;      // [n] or null
  const float* residual = nullptr;  // row stride out_stride, or null; may equal out
  float* out = nullptr;             // [rows][n], row stride out_stride
  std::size_t out_stride = 0;
  // Rows of out have room for whole panels: the padding is written (with zeros' products) too,
  // which spares the last panel its detour.
  bool padded_out = false;
  // The chain starts from out's old value instead of 0: how a chain is carried on over batches.
  bool accumulate = false;
};

// Computes the tile rows × panels. Tiles of one product may run on several threads at once. `out`
// overlaps neither a nor w. NaN and infinity pass through as IEEE has them.
void Matmul(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels);

// A rectangle of a product.
struct MatmulTileRange {
  base::IndexRange rows;
  base::IndexRange panels;  // of 16 columns
};

// Computes and returns this member's part of the whole product: whole panels where there are enough
// for every member, else whole rows. Call from every member of a region; no barrier inside.
MatmulTileRange MatmulShare(const MatmulArgs& args, std::size_t rows, const base::Member& member);

// The same by the definition, one element after the other: the reference for tests and readers.
void ReferenceMatmul(const MatmulArgs& args, std::size_t rows);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_MATMUL_H_
