#include "kernels/scalar_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/math_constants.h"

namespace kvasir::kernels {
namespace {

// Nearest integer, ties to even, for |x| < 2^22 (f32) or 2^51 (f64), by the magic-number trick:
// unlike std::nearbyint it is the same instruction sequence everywhere.
float RoundF32(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
double RoundF64(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

float PowerOfTwoF32(int n) { return std::bit_cast<float>((n + 127) << 23); }
double PowerOfTwoF64(std::int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

// 1/3!, 1/4!, …, 1/14!
constexpr double kInverseFactorial[] = {1.0 / 6,          1.0 / 24,          1.0 / 120,
                                        1.0 / 720,        1.0 / 5040,        1.0 / 40320,
                                        1.0 / 362880,     1.0 / 3628800,     1.0 / 39916800.,
                                        1.0 / 479001600., 1.0 / 6227020800., 1.0 / 87178291200.};

}  // namespace

float ExpF32(float x) {
  if (x < kExpMin) return 0.0f;
  if (x > kExpMax) return std::numeric_limits<float>::infinity();
  if (x != x) return x;
  const float n = RoundF32(x * kLog2E);
  float r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  float p = kExpC6;
  p = std::fma(p, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r * r, r);
  p = p + 1.0f;
  const int k = static_cast<int>(n);
  const int half = k >> 1;
  return p * PowerOfTwoF32(half) * PowerOfTwoF32(k - half);
}

double ExpF64(double x) {
  if (x < -708.0) return 0.0;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();
  if (x != x) return x;
  const double n = RoundF64(x * 0x1.71547652b82fep+0);
  double r = std::fma(-n, 0x1.62e42feep-1, x);
  r = std::fma(-n, 0x1.a39ef35793c76p-33, r);
  double p = kInverseFactorial[11];
  for (int i = 10; i >= 0; --i) p = std::fma(p, r, kInverseFactorial[i]);
  p = std::fma(p, r, 0.5);
  p = std::fma(p, r * r, r) + 1.0;
  const auto k = static_cast<std::int64_t>(n);
  const std::int64_t half = k >> 1;
  return p * PowerOfTwoF64(half) * PowerOfTwoF64(k - half);
}

double LogF64(double x) {
  if (x != x || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (x > std::numeric_limits<double>::max()) return x;
  int exponent = 0;
  if (x < 0x1p-1022) {  // Subnormal: scale up, exactly.
    x *= 0x1p54;
    exponent = -54;
  }
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {  // m in [√½, √2]
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s), s = (m − 1) / (m + 1), |s| <= 0.1716: s^23 / 23 < 2^−62.
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double p = 1.0 / 23;
  for (int k = 21; k >= 3; k -= 2) p = std::fma(p, s2, 1.0 / k);
  const double tail = 2.0 * s * s2 * p;
  const double e = exponent;
  return std::fma(e, 0x1.62e42feep-1, std::fma(e, 0x1.a39ef35793c76p-33, tail) + 2.0 * s);
}

double CosF64(double x) {
  // Folded to [0, π/2] by cos(2π − x) = cos x, cos(π − x) = −cos x.
  constexpr double kPi = 3.141592653589793;
  if (x > kPi) x = 2.0 * kPi - x;
  const double sign = x > kPi / 2 ? -1.0 : 1.0;
  if (sign < 0) x = kPi - x;
  const double x2 = x * x;
  double term[12];  // Taylor coefficients (−1)^i / (2i)!
  term[0] = 1.0;
  for (int i = 1; i < 12; ++i) term[i] = -term[i - 1] / ((2 * i - 1) * (2 * i));
  double p = term[11];
  for (int i = 10; i >= 0; --i) p = std::fma(p, x2, term[i]);
  return sign * p;
}

SinCos SinCosF64(double x) {
  const double shifted = std::fma(x, kTwoOverPi, kRoundMagic);
  const auto quarter = std::bit_cast<std::uint64_t>(shifted) & 3;
  const double n = shifted - kRoundMagic;
  const double r = std::fma(-n, kHalfPiLow, std::fma(-n, kHalfPiHigh, x));
  const double r2 = r * r;
  double s = kSin[6];
  double c = kCos[6];
  for (int i = 5; i >= 0; --i) {
    s = std::fma(s, r2, kSin[i]);
    c = std::fma(c, r2, kCos[i]);
  }
  s = std::fma(s * r2, r, r);
  c = std::fma(c, r2 * r2, std::fma(-0.5, r2, 1.0));
  const double sine = quarter & 1 ? c : s;  // sin(r + π/2) = cos r, cos(r + π/2) = −sin r
  const double cosine = quarter & 1 ? s : c;
  return {quarter & 2 ? -sine : sine, (quarter + 1) & 2 ? -cosine : cosine};
}

double PowF64(double x, double y) { return ExpF64(y * LogF64(x)); }

float SiluF32(float x) { return x / (1.0f + ExpF32(-x)); }

float GeluF32(float x) {
  const float x2 = x * x;
  const float inner = std::fma(kGeluCubic * x2, x, x);
  return x / (1.0f + ExpF32(-kGeluScale * inner));
}

}  // namespace kvasir::kernels
