#include "constraints/number_set.h"

#include <algorithm>
#include <utility>

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
NumberSet HalfOf(const NumberSet& set, bool negative) {
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

// Whether a number of the half set, which holds some, begins with these significant digits (> 0),
// at any scale.
bool SomeBeginsWith(const NumberSet& half, const BigInt& digits) {
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
  for (std::int64_t scale = high - width + 1; scale >= std::min(low, high) - width - 1; --scale) {
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
  bool point = false;
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
    parts.point = true;
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

// Of plain spellings: more digits make a number larger, but not by one of the last digit.
NumberPrefix JudgePlain(const NumberSet& half, const Parts& parts) {
  if (parts.has_exponent) return {};
  const BigInt digits = ToBigInt(parts.digits);
  const Decimal value = {digits, -parts.fraction};
  if (parts.digits.empty()) {  // A minus sign, not before 0.
    return {false, HoldsBetween(half, {{0, 0}, true}, std::nullopt)};
  }
  NumberPrefix judged;
  judged.accepted = parts.complete && !(parts.fraction > 0 && parts.digits.back() == '0') &&
                    !(parts.negative && digits == 0) && half.Contains(value);
  judged.possible =
      judged.accepted ||
      HoldsBetween(half, {value, true}, NumberBound{{BigInt(digits + 1), -parts.fraction}, true});
  if (judged.possible || parts.point || digits == 0) return judged;
  // More digits before the point. Without a maximum there are always some.
  const std::int64_t most = half.max ? DecimalDigits(half.max->value.digits) +
                                           half.max->value.exponent - DecimalDigits(digits)
                                     : 0;
  judged.possible = !half.max;
  for (std::int64_t scale = most; scale > 0 && !judged.possible; --scale) {
    judged.possible = HoldsBetween(half, {{digits, scale}, false},
                                   NumberBound{{BigInt(digits + 1), scale}, true});
  }
  return judged;
}

}  // namespace

bool NumberSet::Contains(const Decimal& value) const {
  return (!min || Below(*min, {value, false})) && (!max || Below({value, false}, *max)) &&
         (!multiple_of || IsMultiple(value, *multiple_of)) &&
         (!not_multiple_of || !IsMultiple(value, *not_multiple_of));
}

bool NumberSet::empty() const {
  for (const bool negative : {false, true}) {
    const NumberSet half = HalfOf(*this, negative);
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

NumberJudge::NumberJudge(const NumberSet& set, NumberSpelling spelling)
    : spelling_(spelling), empty_(set.empty()) {
  for (const bool negative : {false, true}) {
    Half& half = halves_[negative ? 1 : 0];
    half.set = HalfOf(set, negative);
    half.empty = !HoldsBetween(half.set, *half.set.min, std::nullopt);
    half.has_zero = half.set.Contains({0, 0});
    const auto& unit = half.set.multiple_of;
    half.open_ended = !half.set.max && half.set.min->value == Decimal{0, 0} &&
                      !half.set.not_multiple_of &&
                      (!unit || unit->digits == PowerOfTen(DecimalDigits(unit->digits) - 1));
  }
}

NumberPrefix NumberJudge::Judge(std::string_view text) const {
  const Parts parts = TakeNumberApart(text);
  if (!parts.valid) return {};
  if (text.empty()) return {false, !empty_};
  const Half& half = OfSign(parts.negative);
  if (half.empty) return {};
  if (spelling_ == NumberSpelling::kPlain) return JudgePlain(half.set, parts);
  if (parts.digits.empty()) return {false, true};
  NumberPrefix judged;
  const BigInt digits = ToBigInt(parts.digits);
  const bool zero = digits == 0;
  const Span span =
      zero || (!parts.complete && !parts.has_exponent) ? Span{0, 0} : Exponents(half.set, digits);
  if (parts.complete) {
    std::int64_t exponent = 0;
    for (const char c : parts.exponent) {
      exponent = std::min<std::int64_t>(exponent * 10 + (c - '0'), kInfinity / 4);
    }
    exponent = (parts.down ? -exponent : exponent) - parts.fraction;
    judged.accepted = zero ? half.has_zero : exponent >= span.low && exponent <= span.high;
  }
  if (!parts.has_exponent) {
    judged.possible = zero || SomeBeginsWith(half.set, digits);
  } else if (zero) {
    judged.possible = half.has_zero;
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

// Where only multiples of a power of ten count, or nothing does, of the digits only the zeros
// behind the last other one matter, and how many stand behind the point.
std::string NumberJudge::Representative(std::string_view text) const {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const Half& half = OfSign(sign == 1);
  const std::size_t point = text.find('.');
  const std::size_t last = text.find_last_of("123456789");
  if (!half.open_ended || last == std::string_view::npos ||
      text.find_first_of("eE") != std::string_view::npos) {
    return std::string(text);
  }
  std::string short_text(text.substr(0, sign));
  if (point == std::string_view::npos) {
    short_text += '1';
    if (half.set.multiple_of) short_text += text.substr(last + 1);
    return short_text;
  }
  if (!half.set.multiple_of)
    return short_text + (text.ends_with('.') ? "1." : text.ends_with('0') ? "1.0" : "1.1");
  if (last < point) {
    short_text += '1';
    return short_text += text.substr(last + 1);
  }
  short_text += "1.";
  short_text.append(last - point - 1, '0');
  short_text += '1';
  return short_text += text.substr(last + 1);
}

}  // namespace kvasir::constraints
