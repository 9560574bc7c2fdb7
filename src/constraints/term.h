// Terms: languages as expressions, taken apart one character at a time.
#ifndef KVASIR_CONSTRAINTS_TERM_H_
#define KVASIR_CONSTRAINTS_TERM_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/check.h"
#include "constraints/code_point_set.h"
#include "constraints/utf8_automaton.h"

namespace kvasir::constraints {

using TermId = std::uint32_t;
using RuleId = std::uint32_t;

inline constexpr TermId kNothingTerm = 0;  // No text at all.
inline constexpr TermId kEmptyTerm = 1;    // The empty text only.
inline constexpr std::uint64_t kNoMaximum = std::numeric_limits<std::uint64_t>::max();

class TermPool;

// Terms that are written out only where a text gets there: states of machines too large to be built
// beforehand. Immutable to the outside; used under the lock of the pool's owner.
class LazyTerms {
 public:
  virtual ~LazyTerms() = default;
  // The term that `state` stands for; asked for once. It must hold a text, and not hold the empty
  // one.
  virtual TermId Expand(TermPool& pool, std::uint32_t state) = 0;
  // What follows a part that was entered before `state` of a Select term and ended with `result`.
  // It must hold a text. Of sources that make such terms only.
  virtual TermId Select(TermPool& pool, std::uint32_t state, std::uint32_t result);
};

enum class TermKind : std::uint8_t {
  kNothing,
  kEmptyText,
  kChars,      // One character of set a.
  kCall,       // What rule a stands for; never the empty text.
  kConcat,     // a, then b.
  kAlternate,  // a or b.
  kRepeat,     // a, min to max times; a does not hold the empty text.
  kLazy,       // State b of source a.
  kEnter,      // a, which ends in results, then what the Select term b makes of the result.
  kSelect,     // Only in kEnter: state b of source a.
  kResult,     // The end of what was entered, with result a.
};

struct Term {
  TermKind kind = TermKind::kNothing;
  bool nullable = false;  // Holds the empty text.
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  friend bool operator==(const Term&, const Term&) = default;
};
std::size_t hash_value(const Term& term);

// Owns terms; equal terms are one. Single-threaded. Invariants:
//   1. a term's parts have lower ids, except through calls and lazy sources;
//   2. a term other than kNothingTerm holds at least one text, if every rule called does. So
//   whatever
//      can be reached by taking terms apart can be completed.
class TermPool {
 public:
  TermPool();
  TermPool(const TermPool&) = delete;
  TermPool& operator=(const TermPool&) = delete;

  TermId Chars(const CodePointSet& set);  // kNothingTerm for the empty set.
  TermId Text(std::string_view utf8);     // Requires valid UTF-8.
  TermId Call(RuleId rule);
  TermId Concat(TermId a, TermId b);
  TermId Concat(std::span<const TermId> parts);
  TermId Alternate(TermId a, TermId b);
  TermId Alternate(std::span<const TermId> choices);
  // Requires min <= max. Repeats of repeats become one where that is exact: a{3}{3} is a{9}.
  TermId Repeat(TermId term, std::uint64_t min, std::uint64_t max);
  TermId Lazy(std::uint32_t source, std::uint32_t state);
  // `entered`, all of whose texts end in a Result, then what the source's Select says. So terms in
  // different places can share what they enter: what comes behind waits on the recognizer's stack.
  TermId Enter(TermId entered, std::uint32_t source, std::uint32_t state);
  TermId Result(std::uint32_t result);
  // The term without the empty text.
  TermId WithoutEmpty(TermId term);

  // The pool keeps the source.
  std::uint32_t AddSource(std::shared_ptr<LazyTerms> source);

  const Term& term(TermId id) const { return terms_[id]; }
  std::size_t size() const { return terms_.size(); }
  // Whether every text of `less` is one of `more`, as far as their parts tell one by one: true is
  // certain, false is not. a{0,9}b{0,3} covers a{0,4}b{0,3} and b.
  bool Covers(TermId more, TermId less) const;
  const CodePointSet& set(std::uint32_t index) const { return sets_[index]; }
  ByteNode first_byte(std::uint32_t set_index) const { return set_nodes_[set_index]; }
  const Utf8Automaton& utf8() const { return utf8_; }

  // What a term is: the union of terms that each begin with something definite. Calls, for each,
  //   on_end()             the empty text
  //   on_chars(set, rest)  a character of the set, then rest
  //   on_call(rule, rest)  what the rule stands for, then rest
  //   on_enter(other, rest)  the term, then what Selected(rest, its result) is
  //   on_result(result)    the end of what was entered
  //   on_term(other)       this term, to be taken apart next
  template <typename OnEnd, typename OnChars, typename OnCall, typename OnEnter, typename OnResult,
            typename OnTerm>
  void TakeApart(TermId id, OnEnd on_end, OnChars on_chars, OnCall on_call, OnEnter on_enter,
                 OnResult on_result, OnTerm on_term);
  // What follows once what was entered has ended; `rest` is what TakeApart said of it.
  TermId Selected(TermId rest, std::uint32_t result);

 private:
  TermId Intern(const Term& term);
  TermId Expanded(TermId lazy);

  std::vector<Term> terms_;
  boost::unordered_flat_map<Term, TermId> interned_;
  std::vector<CodePointSet> sets_;
  std::vector<ByteNode> set_nodes_;  // [sets]
  std::map<CodePointSet, std::uint32_t> set_ids_;
  Utf8Automaton utf8_;
  std::vector<std::shared_ptr<LazyTerms>> sources_;
  boost::unordered_flat_map<TermId, TermId> expanded_;  // Lazy terms, written out once each.
};

template <typename OnEnd, typename OnChars, typename OnCall, typename OnEnter, typename OnResult,
          typename OnTerm>
void TermPool::TakeApart(TermId id, OnEnd on_end, OnChars on_chars, OnCall on_call,
                         OnEnter on_enter, OnResult on_result, OnTerm on_term) {
  TermId head = id;
  TermId rest = kEmptyTerm;
  if (terms_[id].kind == TermKind::kConcat) {
    head = terms_[id].a;
    rest = terms_[id].b;
  }
  const Term term = terms_[head];  // A copy: terms are added below.
  switch (term.kind) {
    case TermKind::kNothing:
      return;
    case TermKind::kEmptyText:
      return on_end();
    case TermKind::kChars:
      return on_chars(term.a, rest);
    case TermKind::kCall:
      return on_call(term.a, rest);
    case TermKind::kConcat:
      return on_term(Concat(term.a, Concat(term.b, rest)));
    case TermKind::kAlternate:
      on_term(Concat(term.a, rest));
      return on_term(Concat(term.b, rest));
    case TermKind::kRepeat: {
      if (term.min == 0) on_term(rest);
      const TermId more = Repeat(term.a, term.min == 0 ? 0 : term.min - 1,
                                 term.max == kNoMaximum ? kNoMaximum : term.max - 1);
      return on_term(Concat(term.a, Concat(more, rest)));
    }
    case TermKind::kLazy:
      return on_term(Concat(Expanded(head), rest));
    case TermKind::kEnter:
      return on_enter(term.a, Concat(term.b, rest));
    case TermKind::kResult:
      return on_result(term.a);
    case TermKind::kSelect:
      KV_CHECK(false);  // Only behind what was entered: Selected.
  }
}

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TERM_H_
