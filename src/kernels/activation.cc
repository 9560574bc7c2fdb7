#include "kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// 1 + exp(−2u), u the argument of the tanh: gelu(x) = x / that.
HWY_INLINE VF GeluDenominator(VF x, VF x2) {
  const DF d;
  const VF inner = hn::MulAdd(hn::Mul(hn::Set(d, kGeluCubic), x2), x, x);
  return hn::Add(hn::Set(d, 1.0f), ExpVector(hn::Mul(hn::Set(d, -kGeluScale), inner)));
}

HWY_INLINE VF GeluVector(VF x) { return hn::Div(x, GeluDenominator(x, hn::Mul(x, x))); }

// With s = 1 / (1 + exp(−2u)): gelu = x s, gelu' = s + x s (1 − s) · 2u'.
HWY_INLINE VF GeluGradVector(VF x) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const VF x2 = hn::Mul(x, x);
  const VF s = hn::Div(one, GeluDenominator(x, x2));
  const VF slope =
      hn::MulAdd(hn::Set(d, 3.0f * kGeluCubic * kGeluScale), x2, hn::Set(d, kGeluScale));
  return hn::MulAdd(hn::Mul(hn::Mul(x, s), hn::Sub(one, s)), slope, s);
}

void GeluImpl(const float* x, std::size_t n, float* y) {
  const DF d;
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) hn::StoreU(GeluVector(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    HWY_ALIGN float buffer[16] = {};
    for (std::size_t j = i; j < n; ++j) buffer[j - i] = x[j];
    hn::Store(GeluVector(hn::Load(d, buffer)), d, buffer);
    for (std::size_t j = i; j < n; ++j) y[j] = buffer[j - i];
  }
}

void GeluGradImpl(const float* x, const float* dy, std::size_t n, float* dx) {
  const DF d;
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const VF g = GeluGradVector(hn::LoadU(d, x + i));
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), g), d, dx + i);
  }
  if (i < n) {
    HWY_ALIGN float buffer[16] = {};
    for (std::size_t j = i; j < n; ++j) buffer[j - i] = x[j];
    hn::Store(GeluGradVector(hn::Load(d, buffer)), d, buffer);
    for (std::size_t j = i; j < n; ++j) dx[j] = dy[j] * buffer[j - i];
  }
}

HWY_INLINE VF SwiGluVector(VF gate, VF up) {
  const DF d;
  const VF denominator = hn::Add(hn::Set(d, 1.0f), ExpVector(hn::Neg(gate)));
  return hn::Mul(hn::Div(gate, denominator), up);
}

void SwiGluImpl(const float* gate, const float* up, std::size_t n, float* y) {
  const DF d;
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    hn::StoreU(SwiGluVector(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, y + i);
  }
  if (i < n) {
    HWY_ALIGN float gates[16] = {};
    HWY_ALIGN float ups[16] = {};
    for (std::size_t j = i; j < n; ++j) {
      gates[j - i] = gate[j];
      ups[j - i] = up[j];
    }
    hn::Store(SwiGluVector(hn::Load(d, gates), hn::Load(d, ups)), d, gates);
    for (std::size_t j = i; j < n; ++j) y[j] = gates[j - i];
  }
}

// gate becomes dgate, up becomes dup.
HWY_INLINE void SwiGluGradVector(VF dy, VF& gate, VF& up) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const VF s = hn::Div(one, hn::Add(one, ExpVector(hn::Neg(gate))));
  const VF silu = hn::Mul(gate, s);
  const VF slope = hn::MulAdd(silu, hn::Sub(one, s), s);
  gate = hn::Mul(hn::Mul(dy, up), slope);
  up = hn::Mul(dy, silu);
}

void SwiGluGradImpl(const float* gate, const float* up, const float* dy, std::size_t n,
                    float* dgate, float* dup) {
  const DF d;
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    VF g = hn::LoadU(d, gate + i);
    VF u = hn::LoadU(d, up + i);
    SwiGluGradVector(hn::LoadU(d, dy + i), g, u);
    hn::StoreU(g, d, dgate + i);
    hn::StoreU(u, d, dup + i);
  }
  if (i < n) {
    HWY_ALIGN float tail[3][16] = {};  // gate, up, dy
    for (std::size_t j = i; j < n; ++j) {
      tail[0][j - i] = gate[j];
      tail[1][j - i] = up[j];
      tail[2][j - i] = dy[j];
    }
    VF g = hn::Load(d, tail[0]);
    VF u = hn::Load(d, tail[1]);
    SwiGluGradVector(hn::Load(d, tail[2]), g, u);
    hn::Store(g, d, tail[0]);
    hn::Store(u, d, tail[1]);
    for (std::size_t j = i; j < n; ++j) {
      dgate[j] = tail[0][j - i];
      dup[j] = tail[1][j - i];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(GeluImpl);
HWY_EXPORT(GeluGradImpl);
HWY_EXPORT(SwiGluImpl);
HWY_EXPORT(SwiGluGradImpl);

void Gelu(const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(GeluImpl)(x, n, y); }

void GeluGrad(const float* x, const float* dy, std::size_t n, float* dx) {
  HWY_DYNAMIC_DISPATCH(GeluGradImpl)(x, dy, n, dx);
}

void SwiGlu(const float* gate, const float* up, std::size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(SwiGluImpl)(gate, up, n, y);
}

void SwiGluGrad(const float* gate, const float* up, const float* dy, std::size_t n, float* dgate,
                float* dup) {
  HWY_DYNAMIC_DISPATCH(SwiGluGradImpl)(gate, up, dy, n, dgate, dup);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
