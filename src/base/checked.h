// Arithmetic on sizes that come from input: overflow is seen, never wrapped.
#ifndef KVASIR_BASE_CHECKED_H_
#define KVASIR_BASE_CHECKED_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace kvasir::base {

inline std::optional<std::uint64_t> CheckedMul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<std::uint64_t> CheckedAdd(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Product of all factors (1 for none), or nothing if any partial product exceeds 64 bits.
// A zero factor gives 0 wherever it stands.
inline std::optional<std::uint64_t> CheckedProduct(std::initializer_list<std::uint64_t> factors) {
  for (std::uint64_t factor : factors) {
    if (factor == 0) return 0;
  }
  std::uint64_t product = 1;
  for (std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

// value rounded up to a multiple of step (> 0), or nothing on overflow.
inline std::optional<std::uint64_t> CheckedRoundUp(std::uint64_t value, std::uint64_t step) {
  const std::uint64_t rest = value % step;
  return rest == 0 ? value : CheckedAdd(value, step - rest);
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_CHECKED_H_
