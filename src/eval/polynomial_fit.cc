#include "eval/polynomial_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace kvasir::eval {
namespace {

// Solves matrix · c = right by elimination with row pivots; both are overwritten.
std::vector<double> Solve(std::vector<std::vector<double>>& matrix, std::vector<double>& right) {
  const std::size_t n = right.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::fabs(matrix[row][column]) > std::fabs(matrix[pivot][column])) pivot = row;
    }
    std::swap(matrix[pivot], matrix[column]);
    std::swap(right[pivot], right[column]);
    KV_CHECK(matrix[column][column] != 0);  // Else there are too few different x.
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = matrix[row][column] / matrix[column][column];
      for (std::size_t i = column; i < n; ++i) matrix[row][i] -= factor * matrix[column][i];
      right[row] -= factor * right[column];
    }
  }
  for (std::size_t row = n; row-- > 0;) {
    for (std::size_t i = row + 1; i < n; ++i) right[row] -= matrix[row][i] * right[i];
    right[row] /= matrix[row][row];
  }
  return right;
}

}  // namespace

// The normal equations in x ÷ its largest value, which keeps them well enough conditioned for the
// few small powers that are asked for.
PolynomialFit FitPowers(std::span<const double> x, std::span<const double> y,
                        std::span<const int> powers) {
  KV_CHECK(x.size() == y.size() && x.size() >= powers.size() && !powers.empty());
  const double scale = *std::max_element(x.begin(), x.end());
  KV_CHECK(scale > 0);
  const std::size_t n = powers.size();
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n));
  std::vector<double> right(n);
  double mean = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    mean += y[k] / static_cast<double>(x.size());
    for (std::size_t i = 0; i < n; ++i) {
      const double base = std::pow(x[k] / scale, powers[i]);
      right[i] += base * y[k];
      for (std::size_t j = 0; j < n; ++j) matrix[i][j] += base * std::pow(x[k] / scale, powers[j]);
    }
  }
  PolynomialFit fit;
  fit.coefficients = Solve(matrix, right);
  for (std::size_t i = 0; i < n; ++i) fit.coefficients[i] /= std::pow(scale, powers[i]);
  double missed = 0;
  double varied = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    missed += std::pow(y[k] - ValueAt(fit, powers, x[k]), 2);
    varied += std::pow(y[k] - mean, 2);
  }
  fit.r_squared = varied > 0 ? 1 - missed / varied : 1;
  return fit;
}

double ValueAt(const PolynomialFit& fit, std::span<const int> powers, double x) {
  KV_CHECK(fit.coefficients.size() == powers.size());
  double value = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    value += fit.coefficients[i] * std::pow(x, powers[i]);
  }
  return value;
}

}  // namespace kvasir::eval
