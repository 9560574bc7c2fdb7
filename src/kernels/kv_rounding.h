// Rounding of keys and values to 8 and 4 bits and to 16-bit floats: functions of one row (or, per
// channel, of one group's column) alone, the same bits on every target.
//
// int8: amax = the largest magnitude of the row; scale = amax / 127 in f32, rounded up to bf16;
//   n = x / scale, to nearest even, kept within ±127; the value read is scale · n. A scale of zero
//   (a row of zeros, or none above 127 · 2^−150) reads as zeros.
// int4: minimum m = the row's smallest number, rounded down to bf16; scale = (max / 2 − m / 2)
// / 7.5
//   in f32, which cannot overflow, rounded up to bf16; n = (x / 2 − m / 2) / (scale / 2), to
//   nearest even, kept within 0 … 15; the value read is fma(scale, n, m). A scale of zero reads as
//   m.
// So the value read is within scale / 2 of x, up to the roundings of these formulas. Rounding up
// and down to bf16 stops at its largest finite number; what is read is finite where |x| <= 2^127.
//
// A row with a number that is not finite gets a NaN for its scale (and minimum): all of it reads as
// NaN, so that the step's logits tell.
#ifndef KVASIR_KERNELS_KV_ROUNDING_H_
#define KVASIR_KERNELS_KV_ROUNDING_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

struct RowScale {
  std::uint16_t scale = 0;    // bf16, >= 0 or NaN
  std::uint16_t minimum = 0;  // bf16; int4 only
};

// n [count] = the row's numbers rounded. n may not overlap x.
RowScale RoundInt8(const float* x, std::size_t count, std::int8_t* n);
RowScale RoundInt4(const float* x, std::size_t count, std::uint8_t* n);
RowScale ReferenceRoundInt8(const float* x, std::size_t count, std::int8_t* n);
RowScale ReferenceRoundInt4(const float* x, std::size_t count, std::uint8_t* n);

// To nearest even; finite numbers too large become the largest finite one of their sign.
std::uint16_t RoundF16(float x);
std::uint16_t RoundBf16(float x);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_ROUNDING_H_
