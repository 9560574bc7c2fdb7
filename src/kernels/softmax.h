// Softmax weights for sampling, and the cross-entropy loss with its gradient for training.
#ifndef KVASIR_KERNELS_SOFTMAX_H_
#define KVASIR_KERNELS_SOFTMAX_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// Largest of n >= 1 numbers without NaN.
float MaxValue(const float* x, std::size_t n);

// True if all n numbers are finite.
bool AllFinite(const float* x, std::size_t n);

// out[i] = exp((x[i] − max) / divisor), R4's exp in f32; out may equal x.
void SoftmaxWeights(const float* x, std::size_t n, float max, float divisor, float* out);

// One row of logits [n] becomes its gradient: (softmax(logits) − onehot(target)) · weight. Returns
// the row's negative log-likelihood in nats: ln Σ exp(x − max) − (x[target] − max), the sum of
// weights taken in 16 f32 lanes and folded by R2, the logarithm in f64.
double CrossEntropyGrad(float* logits, std::size_t n, std::uint32_t target, float weight);

// The same loss without the gradient; logits are kept.
double CrossEntropy(const float* logits, std::size_t n, std::uint32_t target);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_SOFTMAX_H_
