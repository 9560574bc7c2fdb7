#include "constraints/term.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

// The one repeat that r{a,b}{c,d} is, where it is one: n rounds of it are r{n·a, n·b}, and the
// union over n = c … d has no gap. With a = 0 it never has. Else rounds n and n + 1 touch if
// (n + 1)·a <= n·b + 1, which is hardest for the first n.
struct Counts {
  std::uint64_t min, max;
};
std::optional<Counts> Joined(Counts inner, Counts outer) {
  const bool single = outer.min == outer.max;
  if (inner.min > 0 && !single) {
    const std::uint64_t first = std::max<std::uint64_t>(outer.min, 1);
    if (outer.min == 0 && inner.min > 1) return std::nullopt;
    if (inner.max != kNoMaximum && outer.max > first) {
      const auto next = base::CheckedMul(first + 1, inner.min);
      const auto reach = base::CheckedMul(first, inner.max);
      if (!next || !reach || *next - 1 > *reach) return std::nullopt;
    }
  }
  const auto min = base::CheckedMul(inner.min, outer.min);
  if (!min) return std::nullopt;
  if (outer.max == 0) return Counts{0, 0};
  if (inner.max == kNoMaximum || outer.max == kNoMaximum) return Counts{*min, kNoMaximum};
  const auto max = base::CheckedMul(inner.max, outer.max);
  if (!max) return std::nullopt;
  return Counts{*min, *max};
}

}  // namespace

std::size_t hash_value(const Term& term) {
  const std::array<std::uint64_t, 4> words = {
      static_cast<std::uint64_t>(term.kind) << 1 | (term.nullable ? 1 : 0),
      static_cast<std::uint64_t>(term.a) << 32 | term.b, term.min, term.max};
  return base::HashSpan64(std::span<const std::uint64_t>(words));
}

TermPool::TermPool() {
  Intern({.kind = TermKind::kNothing});
  Intern({.kind = TermKind::kEmptyText, .nullable = true});
}

TermId TermPool::Intern(const Term& term) {
  KV_CHECK(terms_.size() < std::numeric_limits<TermId>::max());
  const auto [place, added] = interned_.emplace(term, static_cast<TermId>(terms_.size()));
  if (added) terms_.push_back(term);
  return place->second;
}

TermId TermPool::Chars(const CodePointSet& set) {
  if (set.empty()) return kNothingTerm;
  const auto [place, added] = set_ids_.emplace(set, static_cast<std::uint32_t>(sets_.size()));
  if (added) {
    sets_.push_back(set);
    set_nodes_.push_back(utf8_.Add(set));
  }
  return Intern({.kind = TermKind::kChars, .a = place->second});
}

TermId TermPool::Text(std::string_view utf8) {
  const auto code_points = base::Utf8ToCodePoints(utf8);
  KV_CHECK(code_points);
  TermId text = kEmptyTerm;
  for (auto c = code_points.value().rbegin(); c != code_points.value().rend(); ++c) {
    text = Concat(Chars(CodePointSet::Of(*c)), text);
  }
  return text;
}

TermId TermPool::Call(RuleId rule) { return Intern({.kind = TermKind::kCall, .a = rule}); }

TermId TermPool::Lazy(std::uint32_t source, std::uint32_t state) {
  return Intern({.kind = TermKind::kLazy, .a = source, .b = state});
}

TermId LazyTerms::Select(TermPool&, std::uint32_t, std::uint32_t) { KV_CHECK(false); }

TermId TermPool::Enter(TermId entered, std::uint32_t source, std::uint32_t state) {
  if (entered == kNothingTerm) return kNothingTerm;
  const TermId select = Intern({.kind = TermKind::kSelect, .a = source, .b = state});
  return Intern({.kind = TermKind::kEnter, .a = entered, .b = select});
}

TermId TermPool::Result(std::uint32_t result) {
  return Intern({.kind = TermKind::kResult, .a = result});
}

TermId TermPool::Selected(TermId rest, std::uint32_t result) {
  const bool more = terms_[rest].kind == TermKind::kConcat;
  const TermId behind = more ? terms_[rest].b : kEmptyTerm;
  const Term select = terms_[more ? terms_[rest].a : rest];
  KV_CHECK(select.kind == TermKind::kSelect);
  return Concat(sources_[select.a]->Select(*this, select.b, result), behind);
}

TermId TermPool::Concat(TermId a, TermId b) {
  if (a == kNothingTerm || b == kNothingTerm) return kNothingTerm;
  if (a == kEmptyTerm) return b;
  if (b == kEmptyTerm) return a;
  return Intern({.kind = TermKind::kConcat,
                 .nullable = terms_[a].nullable && terms_[b].nullable,
                 .a = a,
                 .b = b});
}

TermId TermPool::Concat(std::span<const TermId> parts) {
  TermId all = kEmptyTerm;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) all = Concat(*part, all);
  return all;
}

TermId TermPool::Alternate(TermId a, TermId b) {
  if (a == kNothingTerm || a == b) return b;
  if (b == kNothingTerm) return a;
  return Intern({.kind = TermKind::kAlternate,
                 .nullable = terms_[a].nullable || terms_[b].nullable,
                 .a = a,
                 .b = b});
}

TermId TermPool::Alternate(std::span<const TermId> choices) {
  TermId any = kNothingTerm;
  for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
    any = Alternate(*choice, any);
  }
  return any;
}

TermId TermPool::Repeat(TermId id, std::uint64_t min, std::uint64_t max) {
  KV_CHECK(min <= max);
  if (max == 0 || id == kEmptyTerm) return kEmptyTerm;
  if (id == kNothingTerm) return min == 0 ? kEmptyTerm : kNothingTerm;
  Term term = terms_[id];
  if (term.kind == TermKind::kRepeat) {
    if (const auto joined = Joined({term.min, term.max}, {min, max})) {
      return Repeat(term.a, joined->min, joined->max);
    }
  }
  if (term.nullable) {
    // With empty rounds to fill up, any number of rounds up to max will do.
    min = 0;
    id = WithoutEmpty(id);
    term = terms_[id];
    if (term.kind == TermKind::kRepeat || id == kNothingTerm) return Repeat(id, 0, max);
  }
  if (min == 1 && max == 1) return id;
  return Intern({.kind = TermKind::kRepeat, .nullable = min == 0, .a = id, .min = min, .max = max});
}

TermId TermPool::WithoutEmpty(TermId id) {
  // Along the spine of a concatenation a·(b·(c…)) of parts that all hold the empty text:
  // a⁺·(bc…) ∪ b⁺·(c…) ∪ c⁺…, where a⁺ is a without it. A loop, since spines are long.
  std::vector<TermId> choices;
  while (terms_[id].nullable && id != kEmptyTerm) {
    const Term term = terms_[id];
    if (term.kind == TermKind::kConcat) {
      choices.push_back(Concat(WithoutEmpty(term.a), term.b));
      id = term.b;
    } else if (term.kind == TermKind::kAlternate) {
      choices.push_back(WithoutEmpty(term.a));
      id = term.b;
    } else {
      KV_CHECK(term.kind == TermKind::kRepeat);
      const std::uint64_t more = term.max == kNoMaximum ? kNoMaximum : term.max - 1;
      choices.push_back(Concat(term.a, Repeat(term.a, 0, more)));
      id = kEmptyTerm;
    }
  }
  if (id != kEmptyTerm) choices.push_back(id);
  return Alternate(choices);
}

bool TermPool::Covers(TermId more, TermId less) const {
  constexpr int kMostParts = 64;  // Looked at; sequences may be long.
  const auto head = [&](TermId id) {
    return terms_[id].kind == TermKind::kConcat ? terms_[id].a : id;
  };
  const auto rest = [&](TermId id) {
    return terms_[id].kind == TermKind::kConcat ? terms_[id].b : kEmptyTerm;
  };
  for (int parts = 0; parts < kMostParts; ++parts) {
    if (more == less) return true;
    if (less == kEmptyTerm) return terms_[more].nullable;
    const Term &a = terms_[head(more)], &b = terms_[head(less)];
    const bool same = head(more) == head(less);
    const bool wider = a.kind == TermKind::kRepeat && b.kind == TermKind::kRepeat && a.a == b.a &&
                       a.min <= b.min && b.max <= a.max;
    const bool one = a.kind == TermKind::kRepeat && a.a == head(less) && a.min <= 1;
    if (same || wider || one) {
      less = rest(less);
    } else if (!a.nullable || more == kEmptyTerm) {
      return false;
    }
    more = rest(more);
  }
  return false;
}

TermId TermPool::Expanded(TermId lazy) {
  const auto known = expanded_.find(lazy);
  if (known != expanded_.end()) return known->second;
  const Term term = terms_[lazy];
  const TermId expanded = sources_[term.a]->Expand(*this, term.b);
  KV_DCHECK(expanded != kNothingTerm && !terms_[expanded].nullable);
  expanded_.emplace(lazy, expanded);
  return expanded;
}

std::uint32_t TermPool::AddSource(std::shared_ptr<LazyTerms> source) {
  sources_.push_back(std::move(source));
  return static_cast<std::uint32_t>(sources_.size() - 1);
}

}  // namespace kvasir::constraints
