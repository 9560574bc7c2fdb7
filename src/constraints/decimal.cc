#include "constraints/decimal.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace kvasir::constraints {

BigInt PowerOfTen(std::int64_t exponent) {
  KV_CHECK(exponent >= 0);
  return boost::multiprecision::pow(BigInt(10), static_cast<unsigned>(exponent));
}

std::int64_t DecimalDigits(const BigInt& value) {
  return static_cast<std::int64_t>(value.str().size());
}

std::optional<Decimal> Decimal::Parse(std::string_view text) {
  std::string digits;
  std::int64_t exponent = 0;
  const bool negative = text.starts_with('-');
  std::size_t i = negative ? 1 : 0;
  for (bool fraction = false; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    digits += text[i];
    if (fraction) --exponent;
  }
  if (i < text.size()) {
    ++i;
    const bool down = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    std::int64_t value = 0;
    for (; i < text.size(); ++i) {
      value = std::min<std::int64_t>(value * 10 + (text[i] - '0'), 2 * kMaxDecimalExponent);
    }
    exponent += down ? -value : value;
  }
  if (exponent > kMaxDecimalExponent || exponent < -kMaxDecimalExponent) return std::nullopt;
  // "010" would be read as octal.
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  BigInt value = digits.empty() ? BigInt(0) : BigInt(digits);
  return Decimal{negative ? BigInt(-value) : value, value == 0 ? 0 : exponent};
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.digits.sign() != b.digits.sign()) return a.digits.sign() <=> b.digits.sign();
  if (a.digits == 0) return std::strong_ordering::equal;
  // By the place of the first digit, so that far exponents are never multiplied out.
  const std::int64_t x = DecimalDigits(abs(a.digits)) + a.exponent;
  const std::int64_t y = DecimalDigits(abs(b.digits)) + b.exponent;
  if (x != y) return a.digits.sign() > 0 ? x <=> y : y <=> x;
  const std::int64_t low = std::min(a.exponent, b.exponent);
  const BigInt p = a.digits * PowerOfTen(a.exponent - low);
  const BigInt q = b.digits * PowerOfTen(b.exponent - low);
  return p.compare(q) <=> 0;
}

std::optional<std::uint64_t> ToCount(const Decimal& value, std::uint64_t most) {
  if (value.digits < 0 || value > Decimal{BigInt(most), 0}) return std::nullopt;
  BigInt whole = value.digits;
  if (value.exponent >= 0) {
    whole *= PowerOfTen(value.exponent);
  } else {
    const BigInt unit = PowerOfTen(-value.exponent);
    if (whole % unit != 0) return std::nullopt;
    whole /= unit;
  }
  return static_cast<std::uint64_t>(whole);
}

}  // namespace kvasir::constraints
