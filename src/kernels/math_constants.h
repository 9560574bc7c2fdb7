// Constants of the contract's elementary functions (R4). Changing a bit of one changes the
// contract.
#ifndef KVASIR_KERNELS_MATH_CONSTANTS_H_
#define KVASIR_KERNELS_MATH_CONSTANTS_H_

namespace kvasir::kernels {

// exp(x) = 2^n · e^r with n = round(x · log2 e), r = x − n · ln 2 (ln 2 in two parts, the first
// with few enough bits that n · kLn2High is exact), e^r = 1 + r + r² · (c2 + c3 r + … + c6 r⁴), the
// c's a least-squares fit on Chebyshev nodes of |r| <= ln 2 / 2.
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e4p-1f;
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kExpC2 = 0x1.0p-1f;
inline constexpr float kExpC3 = 0x1.5554dcp-3f;
inline constexpr float kExpC4 = 0x1.5554eap-5f;
inline constexpr float kExpC5 = 0x1.120b74p-7f;
inline constexpr float kExpC6 = 0x1.6d4328p-10f;
inline constexpr float kExpMin = -0x1.5d589ep+6f;  // Below: 0, as e^x < 2^−126.
inline constexpr float kExpMax = 0x1.62e42ep+6f;   // Above: infinity.

// gelu(x) = x / (1 + exp(−2 · √(2/π) · (x + 0.044715 x³))), equal to the usual tanh form.
inline constexpr float kGeluCubic = 0.044715f;
inline constexpr float kGeluScale = 1.5957691216057308f;  // 2 · √(2/π)

// sin and cos: x = n · π/2 + r with n = round(x · 2/π), |r| <= π/4. n · kHalfPiHigh is subtracted
// by one fused multiply-add, which is exact; kHalfPiLow holds what the first part lacks. Then
// Taylor's polynomials, whose first left-out terms are below 2^−56: sin r = r + r³ · Σ kSin[i] r²ⁱ,
// cos r = 1 − r²/2 + r⁴ · Σ kCos[i] r²ⁱ.
inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
inline constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
inline constexpr double kRoundMagic = 0x1.8p52;  // Adding it rounds to an integer, in the low bits.
inline constexpr double kSin[] = {
    -1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
    -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
inline constexpr double kCos[] = {
    1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
    1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_MATH_CONSTANTS_H_
