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

// 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 x³))), relative error below 1e-6 for x > −5.
float GeluF32(float x);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_SCALAR_MATH_H_
