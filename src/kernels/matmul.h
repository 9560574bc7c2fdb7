// Matrix products under rule R1: every output element is one chain of fused multiply-adds over k,
// ascending, so its bits do not depend on the number of rows, the tiling, threads or vector width.
// Where the weights are rounded, R6 says what an element is instead (block_matmul.h).
#ifndef KVASIR_KERNELS_MATMUL_H_
#define KVASIR_KERNELS_MATMUL_H_

#include <cstddef>

#include "base/thread_team.h"
#include "kernels/packed_matrix.h"

namespace kvasir::kernels {

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
