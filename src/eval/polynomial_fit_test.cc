#include "eval/polynomial_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eval/random_stream.h"

namespace kvasir::eval {
namespace {

const std::vector<double> kLengths = {32, 64, 128, 512, 1024, 4096};

TEST(PolynomialFitTest, FindsThePolynomialItWasMadeFrom) {
  const std::vector<std::vector<int>> choices = {{0}, {0, 1}, {1, 2}, {1, 2, 3}};
  for (const std::vector<int>& powers : choices) {
    PolynomialFit made;
    for (std::size_t i = 0; i < powers.size(); ++i) {
      made.coefficients.push_back(3.5 / std::pow(1000, powers[i]) * (i == 1 ? -0.25 : 1.0));
    }
    std::vector<double> y;
    for (const double x : kLengths) y.push_back(ValueAt(made, powers, x));
    const PolynomialFit fit = FitPowers(kLengths, y, powers);
    EXPECT_NEAR(fit.r_squared, 1, 1e-12);
    for (std::size_t i = 0; i < powers.size(); ++i) {
      EXPECT_NEAR(fit.coefficients[i] / made.coefficients[i], 1, 1e-9);
    }
  }
}

// Of all lines through noisy points none has a smaller sum of squares.
TEST(PolynomialFitTest, NoLineNearbyIsBetter) {
  const std::vector<int> powers = {0, 1};
  RandomStream random(17);
  std::vector<double> y;
  for (const double x : kLengths) y.push_back(2 + 0.01 * x + random.Symmetric());
  const PolynomialFit fit = FitPowers(kLengths, y, powers);
  const auto squares = [&](double a, double b) {
    double sum = 0;
    for (std::size_t k = 0; k < y.size(); ++k) sum += std::pow(y[k] - a - b * kLengths[k], 2);
    return sum;
  };
  const double a = fit.coefficients[0];
  const double b = fit.coefficients[1];
  for (const double step : {-1e-4, 1e-4}) {
    EXPECT_LT(squares(a, b), squares(a + step, b));
    EXPECT_LT(squares(a, b), squares(a, b + step * 1e-3));
  }
  EXPECT_GT(fit.r_squared, 0.9);
  EXPECT_LT(fit.r_squared, 1);
}

TEST(PolynomialFitTest, RSquaredIsTheShareExplained) {
  // The best constant explains nothing; a constant that is met, everything.
  const std::vector<double> x = {1, 2, 3, 4};
  const std::vector<int> constant = {0};
  EXPECT_NEAR(FitPowers(x, std::vector<double>{1, 3, 1, 3}, constant).r_squared, 0, 1e-15);
  EXPECT_EQ(FitPowers(x, std::vector<double>{5, 5, 5, 5}, constant).r_squared, 1);
  const std::vector<int> line = {0, 1};
  // By hand: slope 0.4 about the mean 2; missed 3.2 of 4.
  EXPECT_NEAR(FitPowers(x, std::vector<double>{1, 3, 1, 3}, line).r_squared, 0.2, 1e-12);
}

TEST(PolynomialFitDeathTest, RefusesWhatHasNoAnswer) {
  const std::vector<int> line = {0, 1};
  EXPECT_DEATH(FitPowers(std::vector<double>{1}, std::vector<double>{1}, line), "check failed");
  EXPECT_DEATH(FitPowers(std::vector<double>{2, 2}, std::vector<double>{1, 1}, line),
               "check failed");
}

}  // namespace
}  // namespace kvasir::eval
