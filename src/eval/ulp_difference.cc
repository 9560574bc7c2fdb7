#include "eval/ulp_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace kvasir::eval {
namespace {

// Order-preserving: neighbouring floats have neighbouring keys, −0 and +0 the same.
std::int64_t OrderKey(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::int64_t magnitude = bits & 0x7FFFFFFFu;
  return bits >> 31 ? -magnitude : magnitude;
}

}  // namespace

std::optional<std::uint64_t> UlpDistance(float a, float b) {
  if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return static_cast<std::uint64_t>(std::abs(OrderKey(a) - OrderKey(b)));
}

UlpDifference CompareUlp(std::span<const float> a, std::span<const float> b) {
  KV_CHECK(a.size() == b.size());
  UlpDifference result;
  result.count = a.size();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    ++result.differing;
    if (!result.first_differing) result.first_differing = i;
    const auto distance = UlpDistance(a[i], b[i]);
    if (!distance) {
      ++result.incomparable;
      continue;
    }
    sum += static_cast<double>(*distance);
    result.ulp_max = std::max(result.ulp_max, *distance);
    const double absolute = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isfinite(absolute)) result.absolute_max = std::max(result.absolute_max, absolute);
  }
  const std::uint64_t comparable = result.count - result.incomparable;
  if (comparable > 0) result.ulp_mean = sum / static_cast<double>(comparable);
  return result;
}

}  // namespace kvasir::eval
