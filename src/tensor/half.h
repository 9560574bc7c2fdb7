// Exact and correctly rounded conversions between f32 and the 16-bit float formats, in integer
// arithmetic: the same on every processor (R4).
#ifndef KVASIR_TENSOR_HALF_H_
#define KVASIR_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

namespace kvasir::tensor {

// IEEE binary16 → binary32, exact; NaN payloads kept.
inline float F16ToF32(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16;
  const std::uint32_t exponent = h >> 10 & 0x1Fu;
  const std::uint32_t mantissa = h & 0x3FFu;
  if (exponent == 0) {  // Zero or subnormal: mantissa · 2^−24, exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 0xFFu : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// binary32 → binary16, to nearest even; overflow gives infinity, NaN stays NaN.
inline std::uint16_t F32ToF16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // Below 2^−14: subnormal. Adding 0.5 lets the FPU-free rounding
    // happen at bit 13 of 0.5's mantissa: the unit there is 2^−24.
    const std::uint32_t shift = 126 - (magnitude >> 23);  // mantissa bits to drop, >= 14
    if (shift > 24) return static_cast<std::uint16_t>(sign);
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t up = rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (kept + up));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float BF16ToF32(std::uint16_t b) { return std::bit_cast<float>(std::uint32_t{b} << 16); }

// binary32 → bfloat16, to nearest even; NaN stays NaN.
inline std::uint16_t F32ToBF16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_HALF_H_
