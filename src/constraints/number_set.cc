#include "constraints/number_set.h"

#include <algorithm>
#include <utility>

#include "constraints/regex.h"

namespace kvasir::constraints {
namespace {

using boost::multiprecision::gcd;
using boost::multiprecision::lcm;

constexpr std::int64_t kInfinity = std::int64_t{1} << 60;
constexpr std::int64_t kNever = 2 * kInfinity;

struct Ratio {
  BigInt above, below;  // below > 0
};
Ratio Divide(const Decimal& a, const Decimal& b) {
  const std::int64_t shift = a.exponent - b.exponent;
  return {a.digits * PowerOfTen(std::max<std::int64_t>(shift, 0)),
          b.digits * PowerOfTen(std::max<std::int64_t>(-shift, 0))};
}

bool IsMultiple(const Decimal& value, const Decimal& unit) {
  const Ratio ratio = Divide(value, unit);
  return ratio.above % ratio.below == 0;
}

// The smallest multiple of unit that is >= bound, or > bound if it is open.
Decimal NextMultiple(const NumberBound& bound, const Decimal& unit) {
  const Ratio ratio = Divide(bound.value, unit);
  BigInt count = ratio.above / ratio.below;  // Towards zero.
  if (count * ratio.below < ratio.above) ++count;
  if (bound.open && count * ratio.below == ratio.above) ++count;
  return {BigInt(count * unit.digits), unit.exponent};
}

Decimal Plus(const Decimal& a, const Decimal& b) {
  const std::int64_t low = std::min(a.exponent, b.exponent);
  return {BigInt(a.digits * PowerOfTen(a.exponent - low) + b.digits * PowerOfTen(b.exponent - low)),
          low};
}

std::optional<NumberBound> Tighter(const std::optional<NumberBound>& a,
                                   const std::optional<NumberBound>& b, bool lower) {
  if (!a || !b) return a ? a : b;
  if (a->value == b->value) return a->open ? a : b;
  return (a->value > b->value) == lower ? a : b;
}

bool Below(const NumberBound& min, const NumberBound& max) {
  return min.value < max.value || (min.value == max.value && !min.open && !max.open);
}

// Whether the set holds a number between two bounds; without `high` there is none above.
bool HoldsBetween(const NumberSet& set, const NumberBound& low,
                  const std::optional<NumberBound>& high) {
  const NumberBound min = *Tighter(low, set.min, /*lower=*/true);
  const std::optional<NumberBound> max = Tighter(high, set.max, /*lower=*/false);
  if (max && !Below(min, *max)) return false;
  if (!set.multiple_of) {
    // Between two different numbers there are some of any kind; a single one must be looked at.
    return !max || min.value != max->value || !set.not_multiple_of ||
           !IsMultiple(min.value, *set.not_multiple_of);
  }
  // Of two multiples in a row, one is not a multiple of another number, unless all are.
  Decimal candidate = NextMultiple(min, *set.multiple_of);
  for (int tries = 0; tries < 2; ++tries) {
    if (max && !Below({candidate, false}, *max)) return false;
    if (!set.not_multiple_of || !IsMultiple(candidate, *set.not_multiple_of)) return true;
    candidate = Plus(candidate, *set.multiple_of);
  }
  return false;
}

// The set's numbers >= 0, or, negated, its numbers <= 0.
NumberSet Half(const NumberSet& set, bool negative) {
  NumberSet half = set;
  if (negative) {
    half.min = set.max;
    half.max = set.min;
    for (auto* bound : {&half.min, &half.max}) {
      if (*bound) (*bound)->value = -(*bound)->value;
    }
  }
  half.min = Tighter(half.min, NumberBound{{0, 0}, false}, /*lower=*/true);
  return half;
}

// Whole numbers from low to high; none if low > high.
struct Span {
  std::int64_t low, high;
};

// The exponents e with digits · 10^e in the half set; digits > 0.
Span Exponents(const NumberSet& half, const BigInt& digits) {
  const std::int64_t width = DecimalDigits(digits);
  const auto first_digit = [](const Decimal& d) { return DecimalDigits(d.digits) + d.exponent; };
  Span span{-kInfinity, kInfinity};
  if (half.max) {
    if (half.max->value.digits <= 0) return {1, 0};
    span.high = first_digit(half.max->value) - width;
    if (!Below({{digits, span.high}, false}, *half.max)) --span.high;
  }
  if (half.min->value.digits > 0) {
    span.low = first_digit(half.min->value) - width;
    if (!Below(*half.min, {{digits, span.low}, false})) ++span.low;
  }
  // digits · 10^e is a multiple of unit from some e on, or never: what digits lacks of unit must be
  // made of the 2s and 5s of powers of ten; what it has to spare lowers e.
  const auto multiple_from = [&](const Decimal& unit) {
    const BigInt common = gcd(unit.digits, digits);
    BigInt lacks = unit.digits / common, spare = digits / common;
    std::int64_t twos = 0, fives = 0, tens = 0;
    for (; lacks % 2 == 0; lacks /= 2) ++twos;
    for (; lacks % 5 == 0; lacks /= 5) ++fives;
    if (lacks != 1) return kNever;
    if (twos > 0 || fives > 0) return unit.exponent + std::max(twos, fives);
    for (; spare % 10 == 0; spare /= 10) ++tens;
    return unit.exponent - tens;
  };
  if (half.multiple_of) span.low = std::max(span.low, multiple_from(*half.multiple_of));
  if (half.not_multiple_of) {
    span.high = std::min(span.high, multiple_from(*half.not_multiple_of) - 1);
  }
  return span;
}

// Whether a number of the half set begins with these significant digits (> 0), at any scale.
bool SomeBeginsWith(const NumberSet& half, const BigInt& digits) {
  if (half.empty()) return false;
  if (!half.max) return true;  // Far up the numbers that begin so are many in a row.
  const std::int64_t width = DecimalDigits(digits);
  const std::int64_t high = DecimalDigits(half.max->value.digits) + half.max->value.exponent;
  std::int64_t low = high;
  if (half.min->value.digits > 0) {
    low = DecimalDigits(half.min->value.digits) + half.min->value.exponent;
  } else if (half.multiple_of) {
    low = DecimalDigits(half.multiple_of->digits) + half.multiple_of->exponent;
  } else {
    return half.max->value.digits > 0;  // As small as one likes.
  }
  for (std::int64_t scale = std::min(low, high) - width - 1; scale <= high - width + 1; ++scale) {
    if (HoldsBetween(half, {{digits, scale}, false},
                     NumberBound{{BigInt(digits + 1), scale}, true})) {
      return true;
    }
  }
  return false;
}

// Whether an exponent that begins with these digits (any, if there are none) is in the span.
bool SomeExponentBeginsWith(Span span, std::string_view text) {
  span.low = std::max<std::int64_t>(span.low, 0);
  if (span.low > span.high) return false;
  if (text.empty() || span.high >= kInfinity / 2) return true;
  std::int64_t first = 0;
  for (const char c : text) first = first < kInfinity / 10 ? first * 10 + (c - '0') : kInfinity;
  for (std::int64_t last = first; first <= span.high;) {
    if (last >= span.low) return true;
    if (last > span.high) return false;
    first = first * 10;
    last = last * 10 + 9;
  }
  return false;
}

// A text taken apart as a number.
struct Parts {
  bool negative = false;
  std::string digits;  // Before and after the point.
  std::int64_t fraction = 0;
  bool has_exponent = false, signed_exponent = false, down = false;
  std::string exponent;
  bool valid = true;      // It begins a JSON number.
  bool complete = false;  // It is one.
};

Parts TakeNumberApart(std::string_view text) {
  Parts parts;
  std::size_t i = 0;
  const auto digit = [&] { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  if (i < text.size() && text[i] == '-') parts.negative = true, ++i;
  const std::size_t whole = i;
  while (digit()) parts.digits += text[i++];
  if (parts.digits.size() > 1 && text[whole] == '0') parts.valid = false;
  parts.complete = !parts.digits.empty();
  if (parts.complete && i < text.size() && text[i] == '.') {
    ++i;
    const std::size_t begin = i;
    while (digit()) parts.digits += text[i++];
    parts.fraction = static_cast<std::int64_t>(i - begin);
    parts.complete = parts.fraction > 0;
  }
  if (parts.complete && i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    parts.has_exponent = true;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
      parts.signed_exponent = true;
      parts.down = text[i++] == '-';
    }
    while (digit()) parts.exponent += text[i++];
    parts.complete = !parts.exponent.empty();
  }
  parts.valid = parts.valid && i == text.size();
  return parts;
}

BigInt ToBigInt(std::string digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));  // Not octal.
  return digits.empty() ? BigInt(0) : BigInt(digits);
}

}  // namespace

bool NumberSet::Contains(const Decimal& value) const {
  return (!min || Below(*min, {value, false})) && (!max || Below({value, false}, *max)) &&
         (!multiple_of || IsMultiple(value, *multiple_of)) &&
         (!not_multiple_of || !IsMultiple(value, *not_multiple_of));
}

bool NumberSet::empty() const {
  for (const bool negative : {false, true}) {
    const NumberSet half = Half(*this, negative);
    if (HoldsBetween(half, *half.min, std::nullopt)) return false;
  }
  return true;
}

std::optional<NumberSet> NumberSet::Intersect(const NumberSet& other) const {
  if (not_multiple_of && other.not_multiple_of && *not_multiple_of != *other.not_multiple_of) {
    return std::nullopt;
  }
  NumberSet both;
  both.min = Tighter(min, other.min, /*lower=*/true);
  both.max = Tighter(max, other.max, /*lower=*/false);
  both.not_multiple_of = not_multiple_of ? not_multiple_of : other.not_multiple_of;
  both.multiple_of = multiple_of ? multiple_of : other.multiple_of;
  if (multiple_of && other.multiple_of) {
    const std::int64_t low = std::min(multiple_of->exponent, other.multiple_of->exponent);
    both.multiple_of = Decimal{
        BigInt(
            lcm(BigInt(multiple_of->digits * PowerOfTen(multiple_of->exponent - low)),
                BigInt(other.multiple_of->digits * PowerOfTen(other.multiple_of->exponent - low)))),
        low};
  }
  return both;
}

NumberPrefix JudgeNumber(const NumberSet& set, std::string_view text) {
  const Parts parts = TakeNumberApart(text);
  NumberPrefix judged;
  if (!parts.valid) return judged;
  if (text.empty()) return {false, !set.empty()};
  const NumberSet half = Half(set, parts.negative);
  if (parts.digits.empty()) return {false, !half.empty()};
  const BigInt digits = ToBigInt(parts.digits);
  const bool zero = digits == 0;
  const bool has_zero = half.Contains({0, 0});
  const Span span = zero ? Span{0, 0} : Exponents(half, digits);
  if (parts.complete) {
    std::int64_t exponent = 0;
    for (const char c : parts.exponent) {
      exponent = std::min<std::int64_t>(exponent * 10 + (c - '0'), kInfinity / 4);
    }
    exponent = (parts.down ? -exponent : exponent) - parts.fraction;
    judged.accepted = zero ? has_zero : exponent >= span.low && exponent <= span.high;
  }
  if (!parts.has_exponent) {
    judged.possible = zero ? !half.empty() : SomeBeginsWith(half, digits);
  } else if (zero) {
    judged.possible = has_zero;
  } else {
    // The exponent as written is the number's plus the digits behind the point.
    const Span up{span.low <= -kInfinity ? -kInfinity : span.low + parts.fraction,
                  span.high >= kInfinity ? kInfinity : span.high + parts.fraction};
    const Span down{-up.high, -up.low};
    const bool either = !parts.signed_exponent && parts.exponent.empty();
    judged.possible = span.low <= span.high &&
                      (((either || !parts.down) && SomeExponentBeginsWith(up, parts.exponent)) ||
                       ((either || parts.down) && SomeExponentBeginsWith(down, parts.exponent)));
  }
  judged.possible = judged.possible || judged.accepted;
  return judged;
}

TermId NumberTerms::Expand(TermPool& pool, std::uint32_t state) {
  std::vector<TermId> choices;
  for (const char c : std::string_view("-0123456789.eE+")) {
    std::string text = texts_[state] + c;
    const NumberPrefix judged = JudgeNumber(set_, text);
    if (!judged.possible) continue;
    // It can be continued if some longer text is in the set: after one more character.
    bool continues = false;
    for (const char d : std::string_view("0123456789.eE+-")) {
      continues = continues || JudgeNumber(set_, text + d).possible;
    }
    TermId rest = kNothingTerm;
    if (continues) {
      rest = pool.Lazy(source_, static_cast<std::uint32_t>(texts_.size()));
      texts_.push_back(std::move(text));
    }
    if (judged.accepted) rest = pool.Alternate(rest, kEmptyTerm);
    choices.push_back(
        pool.Concat(pool.Chars(CodePointSet::Of(static_cast<std::uint8_t>(c))), rest));
  }
  return pool.Alternate(choices);
}

TermId AnyNumberTerm(TermPool& pool) {
  return RegexTerm(pool, "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?", RegexDialect::kPlain,
                   RegexMatch::kWhole)
      .value();
}

}  // namespace kvasir::constraints
