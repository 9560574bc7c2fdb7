// NumberSet: numbers between bounds that are, or are not, multiples of others; and which beginnings
// of a JSON number can still become one of them.
#ifndef KVASIR_CONSTRAINTS_NUMBER_SET_H_
#define KVASIR_CONSTRAINTS_NUMBER_SET_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "constraints/decimal.h"

namespace kvasir::constraints {

struct NumberBound {
  Decimal value;
  bool open = false;  // The bound itself is not in the set.
  friend bool operator==(const NumberBound&, const NumberBound&) = default;
};

// A value; all numbers by default. Exact: the decimal text counts, not its nearest double. A text
// and its value are not one: 1, 1.0, 10e-1 and 0.1E+1 are all the number 1, and all are accepted.
struct NumberSet {
  std::optional<NumberBound> min;
  std::optional<NumberBound> max;
  std::optional<Decimal> multiple_of;      // > 0
  std::optional<Decimal> not_multiple_of;  // > 0

  bool AllowsAll() const { return !min && !max && !multiple_of && !not_multiple_of; }
  bool Contains(const Decimal& value) const;
  bool empty() const;
  // Nothing if that is beyond this representation: numbers that are not multiples of two others.
  std::optional<NumberSet> Intersect(const NumberSet& other) const;
};

// Which spellings of a number are texts.
enum class NumberSpelling {
  kAny,    // All of JSON's.
  kPlain,  // One for each number: no exponent, no needless zero behind the point, no -0.
};

// What a text that begins as a JSON number (RFC 8259 §6) is to a set.
struct NumberPrefix {
  bool accepted = false;  // It is a number of the set, spelled so.
  bool possible = false;  // It is, or some longer text is.
};

// Judges beginnings of the numbers of one set. Immutable.
class NumberJudge {
 public:
  explicit NumberJudge(const NumberSet& set, NumberSpelling spelling = NumberSpelling::kAny);

  // Nothing may be known of the text; what is no beginning of a JSON number is neither.
  NumberPrefix Judge(std::string_view text) const;
  // A text, as short as may be, that the same texts follow and that is accepted alike. Requires one
  // that is possible.
  std::string Representative(std::string_view text) const;
  NumberSpelling spelling() const { return spelling_; }

 private:
  struct Half {
    NumberSet set;  // What the numbers of this sign are without it.
    bool empty = false;
    bool has_zero = false;
    bool open_ended = false;  // Only multiples of a power of ten are told from other numbers.
  };
  const Half& OfSign(bool negative) const { return halves_[negative ? 1 : 0]; }

  NumberSpelling spelling_;
  bool empty_;
  std::array<Half, 2> halves_;  // >= 0, <= 0
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_NUMBER_SET_H_
