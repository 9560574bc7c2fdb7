// Normalisation of rows under rule R2, forward and backward.
#ifndef KVASIR_KERNELS_NORM_H_
#define KVASIR_KERNELS_NORM_H_

#include <cstddef>

namespace kvasir::kernels {

// Sum of n values: 16 lanes, lane i takes elements i, i + 16, … ascending; folded 8-4-2-1.
float LaneSum(const float* values, std::size_t n);

// What the backward pass needs of a forward row.
struct RowStats {
  float mean;
  float inverse_deviation;  // 1 / sqrt(variance + eps); of RMS norm 1 / sqrt(mean square + eps)
};

// y[c] = fma((x[c] − mean) · inverse_deviation, gain[c], bias[c]) for one row of n channels.
// y may equal x. Error: that of f32 sums over n. `stats` may be null.
void LayerNorm(const float* x, const float* gain, const float* bias, std::size_t n, float eps,
               float* y, RowStats* stats);
void ReferenceLayerNorm(const float* x, const float* gain, const float* bias, std::size_t n,
                        float eps, float* y, RowStats* stats);

// y[c] = (x[c] · inverse) · gain[c], inverse = 1 / sqrt(Σ x² / n + eps), for one row of n channels
// (Zhang & Sennrich 2019, arXiv:1910.07467). y may equal x. Error: that of an f32 sum over n.
void RmsNorm(const float* x, const float* gain, std::size_t n, float eps, float* y);
void ReferenceRmsNorm(const float* x, const float* gain, std::size_t n, float eps, float* y);

// One row of the backward pass: dx[c] += the gradient through the norm; with
// xhat = (x − mean) · inverse_deviation: dgain[c] = fma(dy, xhat, dgain), dbias[c] += dy: chains
// over rows in call order.
struct LayerNormGradArgs {
  const float* x = nullptr;     // [n] input row
  const float* dy = nullptr;    // [n]
  const float* gain = nullptr;  // [n]
  RowStats stats;
  std::size_t n = 0;
  float* dx = nullptr;  // [n], added to
};
void LayerNormInputGrad(const LayerNormGradArgs& args);

// Columns [begin, end) of the parameter gradients over `rows` rows ascending: x and dy [rows][n].
void LayerNormParameterGrad(const float* x, const float* dy, const RowStats* stats,
                            std::size_t rows, std::size_t n, std::size_t begin, std::size_t end,
                            float* dgain, float* dbias);

// The same through RMS norm: dx[c] += inverse · (g − xhat · mean(g · xhat)), g = dy · gain, xhat =
// x · inverse. Returns inverse = 1 / sqrt(Σ x² / n + eps), as RmsNorm has it.
float RmsNormInputGrad(const float* x, const float* dy, const float* gain, std::size_t n, float eps,
                       float* dx);

// Columns [begin, end) of dgain[c] = fma(dy, xhat, dgain) over `rows` rows ascending, of whose
// stats the inverse alone is read.
void RmsNormGainGrad(const float* x, const float* dy, const RowStats* stats, std::size_t rows,
                     std::size_t n, std::size_t begin, std::size_t end, float* dgain);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_NORM_H_
