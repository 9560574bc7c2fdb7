// Sums in f64 over a row of weights, for probabilities and draws (R7).
#ifndef KVASIR_KERNELS_WEIGHT_SUMS_H_
#define KVASIR_KERNELS_WEIGHT_SUMS_H_

#include <cstddef>

namespace kvasir::kernels {

// Σ exp(x[i] − max) over n >= 1 numbers: exponentials in f32 (R4), their sum in f64 in 16 lanes,
// lane i taking elements i, i + 16, … ascending, folded 8-4-2-1 (R2). Keeps x.
double ExpSumF64(const float* x, std::size_t n, float max);
double ReferenceExpSumF64(const float* x, std::size_t n, float max);

inline constexpr std::size_t kWeightBlock = 64;

// cumulative[b], for every block of 64 weights: the f64 sum of weights[0 … 64 (b + 1)), cut at n. A
// block's own sum is taken in 16 lanes as above, and the blocks' sums are added ascending: the long
// chain has a link a block, not a link a weight. Returns how many weights are above 0. Weights are
// not negative, n >= 1. cumulative: [ceil(n / 64)].
std::size_t CumulativeWeights(const float* weights, std::size_t n, double* cumulative);
std::size_t ReferenceCumulativeWeights(const float* weights, std::size_t n, double* cumulative);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_WEIGHT_SUMS_H_
