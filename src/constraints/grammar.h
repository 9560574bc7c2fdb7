// Grammar: rules over terms. What every front end compiles to, and what the recognizer runs.
#ifndef KVASIR_CONSTRAINTS_GRAMMAR_H_
#define KVASIR_CONSTRAINTS_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "constraints/term.h"

namespace kvasir::constraints {

// The limits of every front end; above them a text is refused by name, at them it works.
inline constexpr std::uint64_t kMaxRepeat = 1'000'000;        // In r{n,m}.
inline constexpr std::uint64_t kMaxNestedRepeat = 100'000;    // The product of nested counts.
inline constexpr std::size_t kMaxNesting = 250;               // Of parentheses.
inline constexpr std::size_t kMaxConstraintBytes = 1u << 20;  // Of a regex, grammar or schema.

// Moved, not copied: its terms are its own. Invariants:
//   1. no rule holds the empty text, and every rule that is called holds some text;
//   2. if rule r can begin with a call of s, then rank[r] < rank[s]: no rule calls itself before it
//      has read a byte, however indirectly.
struct Grammar {
  std::unique_ptr<TermPool> pool = std::make_unique<TermPool>();
  std::vector<TermId> rules;         // [rules] what each stands for
  std::vector<std::uint32_t> ranks;  // [rules]
  TermId start = kNothingTerm;
};

// Makes a grammar of rules as they were written, which may hold the empty text, hold nothing, or
// never end: gives them the invariants without changing what start stands for. Errors are kUsage:
// the start holds no text; a rule calls itself before it has read anything (left recursion), named
// by name_of.
base::Result<Grammar> FinishGrammar(Grammar written,
                                    const std::function<std::string(RuleId)>& name_of);

// kUsage if counted repeats are nested so that their counts multiply to more than the limit: the
// states of a text under them could multiply likewise. Repeats of 0 or 1 times, and those without
// counts such as * and +, do not count.
base::Result<void> CheckNestedRepeats(const Grammar& grammar);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_GRAMMAR_H_
