// Sixteen stored keys or values at a time, exactly as f32. Per-target include.
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_KV_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_KV_NUMBERS_INL_H_
#undef KVASIR_KERNELS_KV_NUMBERS_INL_H_
#else
#define KVASIR_KERNELS_KV_NUMBERS_INL_H_
#endif

#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

using DHalfFloat = hn::Rebind<hwy::float16_t, DF>;
using DShort = hn::Rebind<std::uint16_t, DF>;
using DByte = hn::Rebind<std::uint8_t, DF>;
using DSignedByte = hn::Rebind<std::int8_t, DF>;
using DWord = hn::RebindToUnsigned<DF>;

HWY_INLINE V16 LoadF16(const std::uint16_t* p) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto half =
        hn::LoadU(DHalfFloat(), reinterpret_cast<const hwy::float16_t*>(p) + i * kWidth);
    r.part[i] = hn::PromoteTo(DF(), half);
  }
  return r;
}
HWY_INLINE V16 LoadBf16(const std::uint16_t* p) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto wide = hn::PromoteTo(DWord(), hn::LoadU(DShort(), p + i * kWidth));
    r.part[i] = hn::BitCast(DF(), hn::ShiftLeft<16>(wide));
  }
  return r;
}
HWY_INLINE V16 LoadInt8(const std::int8_t* p) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto wide = hn::PromoteTo(DI(), hn::LoadU(DSignedByte(), p + i * kWidth));
    r.part[i] = hn::ConvertTo(DF(), wide);
  }
  return r;
}
// The low and the high halves of 16 bytes.
HWY_INLINE void LoadNibbles(const std::uint8_t* p, V16& low, V16& high) {
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto wide = hn::PromoteTo(DI(), hn::LoadU(DByte(), p + i * kWidth));
    low.part[i] = hn::ConvertTo(DF(), hn::And(wide, hn::Set(DI(), 15)));
    high.part[i] = hn::ConvertTo(DF(), hn::ShiftRight<4>(wide));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
