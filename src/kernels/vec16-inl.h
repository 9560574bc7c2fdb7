// Sixteen virtual float lanes on any vector width (R2): one AVX-512 vector, two AVX2 vectors, four
// NEON vectors. Per-target include: no normal include guard.
#include <cstddef>

#include "hwy/highway.h"

// Register tiles are arrays of vectors: only when the loops over them are unrolled whole do they
// live in registers.
#ifndef KV_UNROLL
#if defined(__clang__)
#define KV_UNROLL _Pragma("unroll")
#else
#define KV_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#if defined(KVASIR_KERNELS_VEC16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_VEC16_INL_H_
#undef KVASIR_KERNELS_VEC16_INL_H_
#else
#define KVASIR_KERNELS_VEC16_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
using DI = hn::RebindToSigned<DF>;

constexpr std::size_t kWidth = hn::MaxLanes(DF());
constexpr std::size_t kParts = 16 / kWidth;
static_assert(kParts * kWidth == 16);

struct V16 {
  VF part[kParts];
};

HWY_INLINE V16 Load16(const float* HWY_RESTRICT p) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::LoadU(DF(), p + i * kWidth);
  return r;
}
HWY_INLINE void Store16(const V16& v, float* HWY_RESTRICT p) {
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) hn::StoreU(v.part[i], DF(), p + i * kWidth);
}
HWY_INLINE V16 Set16(float x) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Set(DF(), x);
  return r;
}
HWY_INLINE V16 Zero16() {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Zero(DF());
  return r;
}
// a · b + c, fused.
HWY_INLINE V16 Fma16(const V16& a, const V16& b, const V16& c) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::MulAdd(a.part[i], b.part[i], c.part[i]);
  return r;
}
HWY_INLINE V16 Add16(const V16& a, const V16& b) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Add(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 Sub16(const V16& a, const V16& b) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Sub(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 Mul16(const V16& a, const V16& b) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Mul(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 Div16(const V16& a, const V16& b) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Div(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 Sqrt16(const V16& a) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Sqrt(a.part[i]);
  return r;
}
HWY_INLINE V16 Max16(const V16& a, const V16& b) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::Max(a.part[i], b.part[i]);
  return r;
}
// The first `count` lanes of v, other elsewhere; count may exceed 16.
HWY_INLINE V16 FirstLanes16(const V16& v, std::size_t count, const V16& other) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto lane = hn::Iota(DI(), static_cast<std::int32_t>(i * kWidth));
    const auto inside = hn::Lt(lane, hn::Set(DI(), static_cast<std::int32_t>(count)));
    r.part[i] = hn::IfThenElse(hn::RebindMask(DF(), inside), v.part[i], other.part[i]);
  }
  return r;
}
// The first `count` (< 16) elements at p, zeros after; reads nothing beyond them. Not inlined:
// tails are rare, and their loops would swell every register tile.
HWY_MAYBE_UNUSED static HWY_NOINLINE V16 LoadFirst16(const float* p, std::size_t count) {
  HWY_ALIGN float buffer[16] = {};
  for (std::size_t i = 0; i < count; ++i) buffer[i] = p[i];
  return Load16(buffer);
}
HWY_MAYBE_UNUSED static HWY_NOINLINE void StoreFirst16(const V16& v, float* p, std::size_t count) {
  HWY_ALIGN float buffer[16];
  Store16(v, buffer);
  for (std::size_t i = 0; i < count; ++i) p[i] = buffer[i];
}

// Lane sums folded 8-4-2-1 (R2).
HWY_INLINE float Fold16(const V16& v) {
  HWY_ALIGN float lane[16];
  Store16(v, lane);
  const hn::CappedTag<float, 4> d4;
  constexpr std::size_t w = hn::MaxLanes(d4);
  static_assert(w == 4);
  // 8: lane i + lane i+8
  const auto a = hn::Add(hn::Load(d4, lane), hn::Load(d4, lane + 8));
  const auto b = hn::Add(hn::Load(d4, lane + 4), hn::Load(d4, lane + 12));
  // 4
  HWY_ALIGN float four[4];
  hn::Store(hn::Add(a, b), d4, four);
  // 2, 1
  return (four[0] + four[2]) + (four[1] + four[3]);
}
// Largest lane; no NaN.
HWY_INLINE float MaxLane16(const V16& v) {
  VF m = v.part[0];
  KV_UNROLL
  for (std::size_t i = 1; i < kParts; ++i) m = hn::Max(m, v.part[i]);
  return hn::GetLane(hn::MaxOfLanes(DF(), m));
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
