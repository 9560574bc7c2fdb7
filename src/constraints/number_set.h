// NumberSet: numbers between bounds that are, or are not, multiples of others; and which beginnings
// of a JSON number can still become one of them.
#ifndef KVASIR_CONSTRAINTS_NUMBER_SET_H_
#define KVASIR_CONSTRAINTS_NUMBER_SET_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "constraints/decimal.h"
#include "constraints/term.h"

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

// What a text that begins as a JSON number (RFC 8259 §6) is to a set.
struct NumberPrefix {
  bool accepted = false;  // It is a number of the set.
  bool possible = false;  // It is, or some longer text is.
};
// Nothing may be known of the text; what is no beginning of a JSON number is neither.
NumberPrefix JudgeNumber(const NumberSet& set, std::string_view text);

// The JSON numbers of one set; the state is an index of a text read so far, 0 the empty one.
class NumberTerms final : public LazyTerms {
 public:
  explicit NumberTerms(NumberSet set) : set_(std::move(set)), texts_{""} {}
  TermId Expand(TermPool& pool, std::uint32_t state) override;
  // Set by whoever adds the source to a pool.
  void set_source(std::uint32_t source) { source_ = source; }

 private:
  const NumberSet set_;
  std::vector<std::string> texts_;
  std::uint32_t source_ = 0;
};

// All JSON numbers.
TermId AnyNumberTerm(TermPool& pool);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_NUMBER_SET_H_
