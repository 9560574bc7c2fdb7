// The contract's elementary functions one number at a time (R4): none comes from the C library,
// whose results differ between systems. (std::fma is exempt: it is exactly specified.)
#ifndef KVASIR_KERNELS_SCALAR_MATH_H_
#define KVASIR_KERNELS_SCALAR_MATH_H_

namespace kvasir::kernels {

// e^x, at most 1.1 ULP off; 0 where e^x < 2^−126; infinity above 88.72; NaN for NaN. The same bits
// as the vector kernels.
float ExpF32(float x);

// e^x, at most 1 ULP off for |x| <= 700; 0 below −708, infinity above 709.78; NaN for NaN.
double ExpF64(double x);

// ln x for x > 0, at most 2 ULP off; −infinity for 0; NaN for x < 0 or NaN.
double LogF64(double x);

// cos x for 0 <= x <= 2π, absolute error below 1e-15. For schedules.
double CosF64(double x);

// sin x and cos x for |x| <= kMaxAngle, absolute error below 3e-16. The same bits as the vector
// kernels. For rotary positions.
struct SinCos {
  double sin;
  double cos;
};
inline constexpr double kMaxAngle = 0x1p32;
SinCos SinCosF64(double x);

// x^y = e^(y ln x) for x > 0, relative error at most (|y ln x| + 1) · 2^−50.
double PowF64(double x, double y);

// 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 x³))), relative error below 1e-6 for x > −5.
float GeluF32(float x);

// x / (1 + e^(−x)), at most 2.6 ULP off for x > −87; the same bits as the vector kernel.
float SiluF32(float x);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_SCALAR_MATH_H_
