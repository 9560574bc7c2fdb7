// exp and what is built on it, in explicit FMA arithmetic (R4): the same bits on every target and
// in scalar_math.h, which states the formulas for a reader. Per-target include.
#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_MATH_INL_H_
#undef KVASIR_KERNELS_MATH_INL_H_
#else
#define KVASIR_KERNELS_MATH_INL_H_
#endif

#include "kernels/math_constants.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE VF ExpVector(VF x) {
  const DF d;
  const DI di;
  const VF n = hn::Round(hn::Mul(x, hn::Set(d, kLog2E)));
  VF r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  VF p = hn::Set(d, kExpC6);
  p = hn::MulAdd(p, r, hn::Set(d, kExpC5));
  p = hn::MulAdd(p, r, hn::Set(d, kExpC4));
  p = hn::MulAdd(p, r, hn::Set(d, kExpC3));
  p = hn::MulAdd(p, r, hn::Set(d, kExpC2));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  // Scaling by 2^n in two exact steps, since 2^128 is no float.
  const auto k = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(k);
  const auto bias = hn::Set(di, 127);
  const auto s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto s2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(k, half), bias)));
  VF y = hn::Mul(hn::Mul(p, s1), s2);
  y = hn::IfThenElse(hn::Gt(x, hn::Set(d, kExpMax)), hn::Inf(d), y);
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, kExpMin)), hn::Zero(d), y);
}

HWY_INLINE V16 Exp16(const V16& x) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = ExpVector(x.part[i]);
  return r;
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
