// RegexPiece: a part of a regular expression, by where in the text it stands. Anchors (^ and $)
// match or do not match depending on that; here they are solved away.
#ifndef KVASIR_CONSTRAINTS_REGEX_PIECE_H_
#define KVASIR_CONSTRAINTS_REGEX_PIECE_H_

#include <cstdint>
#include <vector>

#include "constraints/term.h"

namespace kvasir::constraints {

// A value; its terms belong to the pool. What a part with anchors matches depends on two things:
// whether the text begins where it begins, and whether the text ends where it ends. So it is four
// languages, each as "does it match the empty text" and "which other texts does it match".
class RegexPiece {
 public:
  static RegexPiece Plain(TermId term);  // A part without anchors.
  static RegexPiece Start();             // ^
  static RegexPiece End();               // $
  static RegexPiece Concat(TermPool& pool, std::vector<RegexPiece> parts);
  static RegexPiece Alternate(TermPool& pool, const std::vector<RegexPiece>& choices);
  // Requires plain() or max == 1 or (min <= 1 and max == kNoMaximum).
  static RegexPiece Repeat(TermPool& pool, const RegexPiece& part, std::uint64_t min,
                           std::uint64_t max);

  bool plain() const { return plain_; }
  // What the whole expression matches, as the whole text.
  TermId Whole(TermPool& pool) const;

 private:
  // By whether the text begins at the part's beginning, and ends at its end.
  struct Context {
    bool empty = false;
    TermId other = kNothingTerm;  // Without the empty text.
  };
  Context At(TermPool& pool, bool starts, bool ends) const;
  template <typename Make>
  static RegexPiece FromContexts(Make make);
  static RegexPiece Pair(TermPool& pool, const RegexPiece& a, const RegexPiece& b);

  bool plain_ = true;
  TermId term_ = kEmptyTerm;  // If plain.
  Context contexts_[2][2];    // [starts][ends], if not plain.
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_REGEX_PIECE_H_
