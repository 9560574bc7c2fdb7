// What stands between the matrices of an MLP: GELU in its tanh form, as GGUF's gpt2 means it
// (Hendrycks & Gimpel 2016, arXiv:1606.08415), and SwiGLU (Shazeer 2020, arXiv:2002.05202).
#ifndef KVASIR_KERNELS_ACTIVATION_H_
#define KVASIR_KERNELS_ACTIVATION_H_

#include <cstddef>

namespace kvasir::kernels {

// y[i] = gelu(x[i]); the same bits as GeluF32 in scalar_math.h. y may equal x.
void Gelu(const float* x, std::size_t n, float* y);

// dx[i] = dy[i] · gelu'(x[i]); dx may equal dy.
void GeluGrad(const float* x, const float* dy, std::size_t n, float* dx);

// y[i] = silu(gate[i]) · up[i]; the same bits as SiluF32(gate[i]) * up[i] in scalar_math.h. y may
// equal gate or up.
void SwiGlu(const float* gate, const float* up, std::size_t n, float* y);

// dgate[i] = dy[i] · up[i] · silu'(gate[i]) and dup[i] = dy[i] · silu(gate[i]), with s = 1 / (1 +
// exp(−gate)): silu' = fma(gate · s, 1 − s, s). dgate and dup overlap nothing else.
void SwiGluGrad(const float* gate, const float* up, const float* dy, std::size_t n, float* dgate,
                float* dup);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_ACTIVATION_H_
