// How a time grows with a length: least squares over chosen powers.
#ifndef KVASIR_EVAL_POLYNOMIAL_FIT_H_
#define KVASIR_EVAL_POLYNOMIAL_FIT_H_

#include <span>
#include <vector>

namespace kvasir::eval {

struct PolynomialFit {
  std::vector<double> coefficients;  // [powers]
  // The share of y's variance that the fit explains: 1 − Σ (y − fit)² / Σ (y − mean of y)²; 1 if y
  // is constant and met.
  double r_squared = 0;
};

// The coefficients c that make Σ (y − Σ_i c_i · x^powers_i)² smallest. Requires as many x as y, at
// least as many different x > 0 as powers, and different powers >= 0.
PolynomialFit FitPowers(std::span<const double> x, std::span<const double> y,
                        std::span<const int> powers);

// Its value at x.
double ValueAt(const PolynomialFit& fit, std::span<const int> powers, double x);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_POLYNOMIAL_FIT_H_
