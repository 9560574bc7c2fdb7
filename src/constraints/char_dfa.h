// CharDfa: languages of strings as deterministic automata over characters, for what terms cannot
// do: intersection, complement, and telling which of several languages a string is in.
#ifndef KVASIR_CONSTRAINTS_CHAR_DFA_H_
#define KVASIR_CONSTRAINTS_CHAR_DFA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "constraints/code_point_set.h"
#include "constraints/term.h"

namespace kvasir::constraints {

inline constexpr std::size_t kMaxDfaStates = 50'000;
inline constexpr std::uint64_t kMaxDfaLength = 200'000;  // Of DfaOfLengths.

// A value. Invariants: the edges of a state are ascending and disjoint; from every state a string
// with a label other than 0 is reached, so no state at all means the empty language.
struct CharDfa {
  struct Edge {
    CodePointRange range;
    std::uint32_t next = 0;
  };
  struct State {
    std::vector<Edge> edges;
    std::uint32_t label = 0;  // Of strings that end here; 0: not in the language.
  };
  std::vector<State> states;  // The first is the start.

  bool empty() const { return states.empty(); }
  std::uint32_t LabelOf(std::string_view utf8) const;  // Requires valid UTF-8.
};

// The strings of a term without calls, labelled 1. kUsage above kMaxDfaStates.
base::Result<CharDfa> DfaOfTerm(TermPool& pool, TermId term);
// All strings of min to max characters, labelled 1. kUsage above kMaxDfaLength.
base::Result<CharDfa> DfaOfLengths(std::uint64_t min, std::uint64_t max);
// The i-th of these different strings is labelled i + 1; every other string `other`.
CharDfa DfaOfNames(std::span<const std::string> names, std::uint32_t other);

// All strings of the automaton, if they are at most `most` and of at most `most` characters.
std::optional<std::vector<std::string>> FewStrings(const CharDfa& dfa, std::size_t most);

// Runs automata side by side. A string's label is label_of(its labels in each). kUsage above
// kMaxDfaStates.
using LabelOf = std::function<std::uint32_t(std::span<const std::uint32_t>)>;
base::Result<CharDfa> ProductDfa(std::span<const CharDfa* const> parts, const LabelOf& label_of);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_CHAR_DFA_H_
