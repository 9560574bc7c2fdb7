#include "kernels/kv_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tensor/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kv_rounding.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

#ifndef KVASIR_KERNELS_KV_ROUNDING_SCALES
#define KVASIR_KERNELS_KV_ROUNDING_SCALES
namespace kvasir::kernels {
namespace {

constexpr std::uint32_t kMagnitude = 0x7FFFFFFFu;
constexpr std::uint32_t kInfinity = 0x7F800000u;
constexpr std::uint16_t kBf16NaN = 0x7FC0;
constexpr std::uint16_t kBf16Max = 0x7F7F;
constexpr float kInt8Max = 127.0f;
constexpr float kInt4Max = 15.0f;

// What a row's scale is made of. Magnitudes are compared as integers, among which a NaN is larger
// than any number.
struct Extent {
  std::uint32_t magnitude = 0;  // bits of the largest
  float min = HUGE_VALF;
  float max = -HUGE_VALF;
  bool finite() const { return magnitude < kInfinity; }
};

// The magnitude with these bits, rounded up to bf16.
std::uint16_t UpToBf16(std::uint32_t magnitude) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(kBf16Max, (magnitude + 0xFFFFu) >> 16));
}
std::uint16_t DownToBf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (bits <= kMagnitude) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>(0x8000u | UpToBf16(bits & kMagnitude));
}

RowScale Int8Scale(const Extent& extent) {
  if (!extent.finite()) return {kBf16NaN, 0};
  const float scale = std::bit_cast<float>(extent.magnitude) / kInt8Max;
  return {UpToBf16(std::bit_cast<std::uint32_t>(scale)), 0};
}

RowScale Int4Scale(const Extent& extent) {
  if (!extent.finite()) return {kBf16NaN, kBf16NaN};
  // + 0: a minimum of −0 is 0, whichever of both zeros was found.
  const std::uint16_t minimum = DownToBf16(extent.min + 0.0f);
  const float half_range = extent.max * 0.5f - tensor::BF16ToF32(minimum) * 0.5f;
  const float scale = half_range / (kInt4Max * 0.5f);
  return {scale > 0 ? UpToBf16(std::bit_cast<std::uint32_t>(scale)) : std::uint16_t{0}, minimum};
}

// No number: the row holds no finite numbers; zero: all of them are the same.
bool IsUsable(std::uint16_t scale) { return scale != 0 && scale != kBf16NaN; }

}  // namespace
}  // namespace kvasir::kernels
#endif  // KVASIR_KERNELS_KV_ROUNDING_SCALES

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

using DU = hn::RebindToUnsigned<DF>;
using DByte = hn::Rebind<std::uint8_t, DF>;
using DInt8 = hn::Rebind<std::int8_t, DF>;

// Calls body(numbers of one vector, how many of them count, where they begin); the last ones are
// padded with a copy of the row's last.
template <typename Body>
HWY_INLINE void ForVectors(const float* x, std::size_t count, const Body& body) {
  const DF d;
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) body(hn::LoadU(d, x + i), kWidth, i);
  if (i == count) return;
  HWY_ALIGN float buffer[kWidth];
  for (std::size_t j = 0; j < kWidth; ++j) buffer[j] = x[std::min(i + j, count - 1)];
  body(hn::Load(d, buffer), count - i, i);
}

HWY_INLINE Extent ExtentOf(const float* x, std::size_t count) {
  const DF d;
  const DU du;
  auto magnitude = hn::Zero(du);
  VF min = hn::Set(d, HUGE_VALF);
  VF max = hn::Set(d, -HUGE_VALF);
  ForVectors(x, count, [&](VF v, std::size_t, std::size_t) HWY_ATTR {
    magnitude = hn::Max(magnitude, hn::And(hn::BitCast(du, v), hn::Set(du, kMagnitude)));
    min = hn::Min(min, v);
    max = hn::Max(max, v);
  });
  return {hn::GetLane(hn::MaxOfLanes(du, magnitude)), hn::GetLane(hn::MinOfLanes(d, min)),
          hn::GetLane(hn::MaxOfLanes(d, max))};
}

template <typename DNarrow, typename T>
HWY_INLINE void StoreNumbers(VF rounded, std::size_t count, T* n) {
  const DNarrow narrow;
  const auto numbers = hn::DemoteTo(narrow, hn::NearestInt(rounded));
  if (count == kWidth) {
    hn::StoreU(numbers, narrow, n);
    return;
  }
  HWY_ALIGN T buffer[kWidth];
  hn::StoreU(numbers, narrow, buffer);
  std::copy_n(buffer, count, n);
}

RowScale RoundInt8Impl(const float* x, std::size_t count, std::int8_t* n) {
  const RowScale scale = Int8Scale(ExtentOf(x, count));
  if (!IsUsable(scale.scale)) {
    std::fill_n(n, count, std::int8_t{0});
    return scale;
  }
  const DF d;
  const VF divisor = hn::Set(d, tensor::BF16ToF32(scale.scale));
  ForVectors(x, count, [&](VF v, std::size_t some, std::size_t i) HWY_ATTR {
    const VF clamped = hn::Clamp(hn::Div(v, divisor), hn::Set(d, -kInt8Max), hn::Set(d, kInt8Max));
    StoreNumbers<DInt8>(clamped, some, n + i);
  });
  return scale;
}

RowScale RoundInt4Impl(const float* x, std::size_t count, std::uint8_t* n) {
  const RowScale scale = Int4Scale(ExtentOf(x, count));
  if (!IsUsable(scale.scale)) {
    std::fill_n(n, count, std::uint8_t{0});
    return scale;
  }
  const DF d;
  const VF half = hn::Set(d, 0.5f);
  const VF divisor = hn::Mul(half, hn::Set(d, tensor::BF16ToF32(scale.scale)));
  const VF half_minimum = hn::Mul(half, hn::Set(d, tensor::BF16ToF32(scale.minimum)));
  ForVectors(x, count, [&](VF v, std::size_t some, std::size_t i) HWY_ATTR {
    const VF steps = hn::Div(hn::Sub(hn::Mul(v, half), half_minimum), divisor);
    const VF clamped = hn::Clamp(steps, hn::Zero(d), hn::Set(d, kInt4Max));
    StoreNumbers<DByte>(clamped, some, n + i);
  });
  return scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(RoundInt8Impl);
HWY_EXPORT(RoundInt4Impl);

RowScale RoundInt8(const float* x, std::size_t count, std::int8_t* n) {
  return HWY_DYNAMIC_DISPATCH(RoundInt8Impl)(x, count, n);
}
RowScale RoundInt4(const float* x, std::size_t count, std::uint8_t* n) {
  return HWY_DYNAMIC_DISPATCH(RoundInt4Impl)(x, count, n);
}

namespace {

Extent ReferenceExtent(const float* x, std::size_t count) {
  Extent extent;
  for (std::size_t i = 0; i < count; ++i) {
    extent.magnitude = std::max(extent.magnitude, std::bit_cast<std::uint32_t>(x[i]) & kMagnitude);
    extent.min = std::min(extent.min, x[i]);
    extent.max = std::max(extent.max, x[i]);
  }
  return extent;
}

// To nearest even, of |x| < 2^22: the sum has no bits for a fraction.
float Nearest(float x) {
  constexpr float kMagic = 0x1.8p23f;
  const float shifted = x + kMagic;
  return shifted - kMagic;
}

}  // namespace

RowScale ReferenceRoundInt8(const float* x, std::size_t count, std::int8_t* n) {
  const RowScale scale = Int8Scale(ReferenceExtent(x, count));
  const float divisor = tensor::BF16ToF32(scale.scale);
  for (std::size_t i = 0; i < count; ++i) {
    n[i] = 0;
    if (!IsUsable(scale.scale)) continue;
    n[i] = static_cast<std::int8_t>(Nearest(std::clamp(x[i] / divisor, -kInt8Max, kInt8Max)));
  }
  return scale;
}

RowScale ReferenceRoundInt4(const float* x, std::size_t count, std::uint8_t* n) {
  const RowScale scale = Int4Scale(ReferenceExtent(x, count));
  const float divisor = tensor::BF16ToF32(scale.scale) * 0.5f;
  const float half_minimum = tensor::BF16ToF32(scale.minimum) * 0.5f;
  for (std::size_t i = 0; i < count; ++i) {
    n[i] = 0;
    if (!IsUsable(scale.scale)) continue;
    const float steps = (x[i] * 0.5f - half_minimum) / divisor;
    n[i] = static_cast<std::uint8_t>(Nearest(std::clamp(steps, 0.0f, kInt4Max)));
  }
  return scale;
}

std::uint16_t RoundF16(float x) {
  constexpr float kMax = 65504.0f;
  // A NaN passes, and an infinity is its own sign's; neither is a finite number.
  const bool finite = (std::bit_cast<std::uint32_t>(x) & kMagnitude) < kInfinity;
  return tensor::F32ToF16(finite ? std::clamp(x, -kMax, kMax) : x);
}

std::uint16_t RoundBf16(float x) {
  constexpr float kMax = 0x1.FEp127f;
  const bool finite = (std::bit_cast<std::uint32_t>(x) & kMagnitude) < kInfinity;
  return tensor::F32ToBF16(finite ? std::clamp(x, -kMax, kMax) : x);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
