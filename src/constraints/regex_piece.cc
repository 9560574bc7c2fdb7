#include "constraints/regex_piece.h"

#include "base/check.h"

namespace kvasir::constraints {

RegexPiece RegexPiece::Plain(TermId term) {
  RegexPiece piece;
  piece.term_ = term;
  return piece;
}

template <typename Make>
RegexPiece RegexPiece::FromContexts(Make make) {
  RegexPiece piece;
  piece.plain_ = false;
  for (const bool starts : {false, true}) {
    for (const bool ends : {false, true}) piece.contexts_[starts][ends] = make(starts, ends);
  }
  return piece;
}

RegexPiece RegexPiece::Start() {
  return FromContexts([](bool starts, bool) { return Context{starts, kNothingTerm}; });
}

RegexPiece RegexPiece::End() {
  return FromContexts([](bool, bool ends) { return Context{ends, kNothingTerm}; });
}

RegexPiece::Context RegexPiece::At(TermPool& pool, bool starts, bool ends) const {
  if (!plain_) return contexts_[starts][ends];
  return {pool.term(term_).nullable, pool.WithoutEmpty(term_)};
}

// A text of a·b that is not empty is one of a, with b empty after it; or one of b, with a empty
// before it; or both are not empty.
RegexPiece RegexPiece::Pair(TermPool& pool, const RegexPiece& a, const RegexPiece& b) {
  if (a.plain_ && b.plain_) return Plain(pool.Concat(a.term_, b.term_));
  return FromContexts([&](bool starts, bool ends) {
    const Context whole_a = a.At(pool, starts, ends), whole_b = b.At(pool, starts, ends);
    std::vector<TermId> choices;
    if (b.At(pool, false, ends).empty) choices.push_back(whole_a.other);
    if (a.At(pool, starts, false).empty) choices.push_back(whole_b.other);
    choices.push_back(pool.Concat(a.At(pool, starts, false).other, b.At(pool, false, ends).other));
    return Context{whole_a.empty && whole_b.empty, pool.Alternate(choices)};
  });
}

RegexPiece RegexPiece::Concat(TermPool& pool, std::vector<RegexPiece> parts) {
  RegexPiece all = Plain(kEmptyTerm);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) all = Pair(pool, *part, all);
  return all;
}

RegexPiece RegexPiece::Alternate(TermPool& pool, const std::vector<RegexPiece>& choices) {
  bool plain = true;
  std::vector<TermId> terms;
  for (const RegexPiece& choice : choices) {
    plain = plain && choice.plain_;
    terms.push_back(choice.term_);
  }
  if (plain) return Plain(pool.Alternate(terms));
  return FromContexts([&](bool starts, bool ends) {
    bool empty = false;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const Context context = choices[i].At(pool, starts, ends);
      empty = empty || context.empty;
      terms[i] = context.other;
    }
    return Context{empty, pool.Alternate(terms)};
  });
}

RegexPiece RegexPiece::Repeat(TermPool& pool, const RegexPiece& part, std::uint64_t min,
                              std::uint64_t max) {
  if (part.plain_ || max == 0) return Plain(pool.Repeat(part.term_, min, max));
  KV_CHECK(max == 1 || (min <= 1 && max == kNoMaximum));
  return FromContexts([&](bool starts, bool ends) {
    // One round, or a first, some inner, and a last one; empty rounds add nothing.
    TermId other = part.contexts_[starts][ends].other;
    if (max == kNoMaximum) {
      const TermId inner = pool.Repeat(part.contexts_[false][false].other, 0, kNoMaximum);
      other =
          pool.Alternate(other, pool.Concat(part.contexts_[starts][false].other,
                                            pool.Concat(inner, part.contexts_[false][ends].other)));
    }
    return Context{min == 0 || part.contexts_[starts][ends].empty, other};
  });
}

TermId RegexPiece::Whole(TermPool& pool) const {
  if (plain_) return term_;
  const Context& whole = contexts_[true][true];
  return whole.empty ? pool.Alternate(whole.other, kEmptyTerm) : whole.other;
}

}  // namespace kvasir::constraints
