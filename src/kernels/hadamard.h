// The Hadamard rotation that spreads outliers over a head's channels before keys and values are
// rounded (QuaRot: Ashkboos et al. 2024, arXiv:2404.00456). Queries turned likewise have the same
// products with the keys; values are turned back after attention.
#ifndef KVASIR_KERNELS_HADAMARD_H_
#define KVASIR_KERNELS_HADAMARD_H_

#include <cstddef>

namespace kvasir::kernels {

// The largest power of two that divides head_dim (>= 1).
constexpr std::size_t HadamardSize(std::size_t head_dim) { return head_dim & (~head_dim + 1); }

// x [heads][head_dim], in place: each run of n = HadamardSize(head_dim) channels becomes H x / √n.
//   for s = 1, 2, 4 … n / 2: (x[i], x[i + s]) = (x[i] + x[i + s], x[i] − x[i + s])
//   then x[i] = x[i] · f32(1 / √n)
// where i goes through the channels whose bit s is 0. Symmetric and orthogonal, so its own inverse:
// applied twice it gives x again within 2 · (log2 n + 2) · 2^−24 · ‖x‖₂ in the run's 2-norm (log2 n
// additions, a product and a constant are rounded, each way). n = 1 changes nothing. Elementwise:
// the same bits on every target. head_dim >= 1.
void HadamardRotate(float* x, std::size_t heads, std::size_t head_dim);
void ReferenceHadamardRotate(float* x, std::size_t heads, std::size_t head_dim);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_HADAMARD_H_
