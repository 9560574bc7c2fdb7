// Products with rounded weights under rule R6: the chain of a block of 32 along k runs over the
// integers, from 0; its sum times the block's scale is then added to the output in one fused
// multiply-add, blocks ascending. So an element's bits do not depend on rows, tiling, threads or
// vector width, as with f32 weights.
#ifndef KVASIR_KERNELS_BLOCK_MATMUL_H_
#define KVASIR_KERNELS_BLOCK_MATMUL_H_

#include <cstddef>

#include "kernels/matmul.h"

namespace kvasir::kernels {

// What Matmul (matmul.h) does where args.w is rounded:
//   out[m][n] = (acc + bias[n]) + residual[m][n],
//   acc = fma(partial_b, scale[n][b], acc) over blocks b from acc = 0,
//   partial_b = fma(a[m][k], q[n][k], partial_b) over the 32 k of the block from 0.
// Requires a_k_stride 1, and neither accumulate nor padded_out: only training uses these.
void BlockMatmul(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels);

// The same by the definition, one element after the other.
void ReferenceBlockMatmul(const MatmulArgs& args, std::size_t rows);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_BLOCK_MATMUL_H_
