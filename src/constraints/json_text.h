// JSON's spelling of strings, as terms.
#ifndef KVASIR_CONSTRAINTS_JSON_TEXT_H_
#define KVASIR_CONSTRAINTS_JSON_TEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "constraints/char_dfa.h"
#include "constraints/term.h"

namespace kvasir::constraints {

// Which spellings of a string are texts.
enum class StringSpelling {
  kAny,    // All of JSON's.
  kPlain,  // One for each string: only what must be is escaped, by \n and its like where there is
           // one, else by \u00xx in lower case (RFC 8785 §3.2.2.2).
};

// Spells characters inside JSON strings (RFC 8259 §7): as themselves, by \n and its like, and by
// \uXXXX, with a pair of surrogates where needed. A surrogate without its partner is no character,
// and in no string. Borrows the pool. Single-threaded.
class JsonSpeller {
 public:
  JsonSpeller(TermPool& pool, StringSpelling spelling) : pool_(pool), spelling_(spelling) {}

  // Every such spelling of one character of the set.
  TermId Character(const CodePointSet& set);
  // For each state that the edges of a DFA state lead to, the spellings of what leads there.
  using Moves = std::vector<std::pair<TermId, std::uint32_t>>;
  Moves MovesOf(const CharDfa::State& state);

 private:
  TermId Escapes(const CodePointSet& set);
  TermId PlainEscapes(const CodePointSet& set);
  // Four hexadecimal digits, or fewer: the numbers of these ranges.
  TermId Hex(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges, int digits);

  TermPool& pool_;
  const StringSpelling spelling_;
  std::map<CodePointSet, TermId> characters_;
  std::map<std::pair<std::vector<std::pair<std::uint32_t, std::uint32_t>>, int>, TermId> hex_;
};

// The strings of an automaton, each behind its opening quote: characters and the closing quote. The
// state is the automaton's.
class JsonStringTerms final : public LazyTerms {
 public:
  JsonStringTerms(std::shared_ptr<const CharDfa> dfa, std::shared_ptr<JsonSpeller> speller)
      : dfa_(std::move(dfa)), speller_(std::move(speller)) {}
  TermId Expand(TermPool& pool, std::uint32_t state) override;
  void set_source(std::uint32_t source) { source_ = source; }

 private:
  const std::shared_ptr<const CharDfa> dfa_;
  const std::shared_ptr<JsonSpeller> speller_;
  std::uint32_t source_ = 0;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_JSON_TEXT_H_
