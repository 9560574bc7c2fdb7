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

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(GeluImpl);
HWY_EXPORT(GeluGradImpl);
HWY_EXPORT(SwiGluImpl);

void Gelu(const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(GeluImpl)(x, n, y); }

void GeluGrad(const float* x, const float* dy, std::size_t n, float* dx) {
  HWY_DYNAMIC_DISPATCH(GeluGradImpl)(x, dy, n, dx);
}

void SwiGlu(const float* gate, const float* up, std::size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(SwiGluImpl)(gate, up, n, y);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
