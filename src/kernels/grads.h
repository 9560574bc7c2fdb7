// Small pieces of the backward pass and the optimiser's update.
#ifndef KVASIR_KERNELS_GRADS_H_
#define KVASIR_KERNELS_GRADS_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// sums[c] += x[r][c] for the columns [begin, end), rows ascending. x [rows][stride].
void AddColumns(const float* x, std::size_t rows, std::size_t stride, std::size_t begin,
                std::size_t end, float* sums);

// y[i] = y[i] + x[i].
void AddInto(const float* x, std::size_t n, float* y);

// One causal row: scores[0 … visible-1] become softmax(scores · scale), the rest up to n zero.
// Lane sums by R2.
void CausalSoftmaxRow(float* scores, std::size_t visible, std::size_t n, float scale);

// Through that softmax: grad[j] = p[j] · (grad[j] − Σ grad·p) · scale for j < visible, else 0.
void CausalSoftmaxGradRow(const float* p, float* grad, std::size_t visible, std::size_t n,
                          float scale);

// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) on n parameters.
struct AdamWStep {
  float learning_rate;
  float beta1, beta2;
  float epsilon;
  float weight_decay;    // decoupled: p ← p − learning_rate · weight_decay · p
  float correction1;     // 1 / (1 − beta1^t)
  float correction2;     // 1 / (1 − beta2^t)
  float gradient_scale;  // from clipping
};
void AdamW(const AdamWStep& step, const float* gradient, std::size_t n, float* parameter,
           float* first_moment, float* second_moment);

// Σ x² in f64: eight lanes (element i to lane i mod 8), folded 4-2-1.
double SumSquares(const float* x, std::size_t n);

// Inverted dropout: x[i] = keep(i) ? x[i] · scale : 0. keep(i) holds where the i-th 16-bit lane of
// the Philox stream (key, {0 …, sequence, stream, step}) is at least `drop` (of 65,536).
struct DropoutKey {
  std::uint64_t seed;
  std::uint32_t step;
  std::uint32_t site;      // layer and place
  std::uint32_t sequence;  // of the global batch
};
// n elements of one sequence, from element `first` (a multiple of 8) on.
void Dropout(const DropoutKey& key, std::uint32_t drop, float scale, std::size_t first,
             std::size_t n, float* x);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_GRADS_H_
