// Decimal: exact decimal numbers, as JSON writes them.
#ifndef KVASIR_CONSTRAINTS_DECIMAL_H_
#define KVASIR_CONSTRAINTS_DECIMAL_H_

#include <boost/multiprecision/cpp_int.hpp>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir::constraints {

using BigInt = boost::multiprecision::cpp_int;

inline constexpr std::int64_t kMaxDecimalExponent = 10'000;

BigInt PowerOfTen(std::int64_t exponent);         // Requires exponent >= 0.
std::int64_t DecimalDigits(const BigInt& value);  // Requires value > 0.

// digits · 10^exponent. A value.
struct Decimal {
  BigInt digits = 0;
  std::int64_t exponent = 0;

  // Requires a JSON number (RFC 8259 §6); nothing if its exponent is beyond kMaxDecimalExponent.
  static std::optional<Decimal> Parse(std::string_view text);

  Decimal operator-() const { return {BigInt(-digits), exponent}; }
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) { return (a <=> b) == 0; }
};

// The whole number it is, if it is one from 0 to most.
std::optional<std::uint64_t> ToCount(const Decimal& value, std::uint64_t most);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_DECIMAL_H_
