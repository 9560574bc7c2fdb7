#include "constraints/grammar.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

// Which terms and rules have a property that is known of single characters and the empty text, that
// a call has if its rule has it, a sequence if both parts have it, alternatives if one has it, and
// a repeat if it may be skipped or its part has it. The least solution, by one visit per use of a
// part.
class TermFacts {
 public:
  TermFacts(const Grammar& grammar, bool of_chars)
      : terms_(grammar.pool->size(), false), rules_(grammar.rules.size(), false) {
    const TermPool& pool = *grammar.pool;
    std::vector<std::vector<TermId>> wholes(pool.size());  // [terms] terms that it is a part of
    std::vector<std::vector<TermId>> calls(rules_.size());
    std::vector<std::vector<RuleId>> bodies(pool.size());
    std::vector<TermId> found;
    for (RuleId rule = 0; rule < rules_.size(); ++rule) bodies[grammar.rules[rule]].push_back(rule);
    for (TermId id = 0; id < pool.size(); ++id) {
      const Term& term = pool.term(id);
      const bool two = term.kind == TermKind::kConcat || term.kind == TermKind::kAlternate;
      if (term.kind == TermKind::kCall) calls[term.a].push_back(id);
      if (two || term.kind == TermKind::kRepeat) wholes[term.a].push_back(id);
      if (two) wholes[term.b].push_back(id);
      const bool leaf = term.kind == TermKind::kChars || term.kind == TermKind::kLazy;
      if (term.kind == TermKind::kEmptyText || (leaf && of_chars) ||
          (term.kind == TermKind::kRepeat && term.min == 0)) {
        found.push_back(id);
      }
    }
    while (!found.empty()) {
      const TermId id = found.back();
      found.pop_back();
      if (terms_[id]) continue;
      terms_[id] = true;
      for (const TermId whole : wholes[id]) {
        const Term& term = pool.term(whole);
        if (term.kind != TermKind::kConcat || (terms_[term.a] && terms_[term.b])) {
          found.push_back(whole);
        }
      }
      for (const RuleId rule : bodies[id]) {
        rules_[rule] = true;
        found.insert(found.end(), calls[rule].begin(), calls[rule].end());
      }
    }
  }
  bool rule(RuleId id) const { return rules_[id]; }

 private:
  std::vector<bool> terms_;
  std::vector<bool> rules_;
};

// Rewrites every call by `call(rule)`, in all terms there are now: [terms] what each became.
template <typename Call>
std::vector<TermId> RewriteCalls(TermPool& pool, Call call) {
  std::vector<TermId> now(pool.size(), kNothingTerm);
  for (TermId id = 0; id < now.size(); ++id) {
    const Term term = pool.term(id);
    switch (term.kind) {
      case TermKind::kCall:
        now[id] = call(term.a);
        break;
      case TermKind::kConcat:
        now[id] = pool.Concat(now[term.a], now[term.b]);
        break;
      case TermKind::kAlternate:
        now[id] = pool.Alternate(now[term.a], now[term.b]);
        break;
      case TermKind::kRepeat:
        now[id] = pool.Repeat(now[term.a], term.min, term.max);
        break;
      default:
        now[id] = id;
    }
  }
  return now;
}

// The rules that each rule can begin with, by one walk over what its body can begin with.
std::vector<std::vector<RuleId>> LeftCalls(const Grammar& grammar) {
  const TermPool& pool = *grammar.pool;
  std::vector<std::vector<RuleId>> calls(grammar.rules.size());
  std::vector<RuleId> visited_for(pool.size(), static_cast<RuleId>(calls.size()));
  std::vector<TermId> open;
  for (RuleId rule = 0; rule < calls.size(); ++rule) {
    open.push_back(grammar.rules[rule]);
    while (!open.empty()) {
      const TermId id = open.back();
      open.pop_back();
      if (visited_for[id] == rule) continue;
      visited_for[id] = rule;
      const Term& term = pool.term(id);
      if (term.kind == TermKind::kCall) calls[rule].push_back(term.a);
      const bool two = term.kind == TermKind::kConcat || term.kind == TermKind::kAlternate;
      if (two || term.kind == TermKind::kRepeat) open.push_back(term.a);
      if (two && (term.kind == TermKind::kAlternate || pool.term(term.a).nullable)) {
        open.push_back(term.b);
      }
    }
  }
  return calls;
}

// Orders the rules so that callers come first; a rule that begins with itself is the error.
base::Result<void> SetRanks(Grammar& grammar, const std::function<std::string(RuleId)>& name_of) {
  const auto calls = LeftCalls(grammar);
  const std::size_t count = grammar.rules.size();
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(count, Mark::kNew);
  std::vector<std::pair<RuleId, std::size_t>> path;  // A rule and the next of its calls.
  std::uint32_t rank = static_cast<std::uint32_t>(count);
  grammar.ranks.assign(count, 0);
  for (RuleId first = 0; first < count; ++first) {
    if (marks[first] == Mark::kNew) path.push_back({first, 0});
    while (!path.empty()) {
      auto& [rule, next] = path.back();
      marks[rule] = Mark::kOpen;
      const std::vector<RuleId>& own = calls[rule];
      if (next == own.size()) {
        marks[rule] = Mark::kDone;
        grammar.ranks[rule] = --rank;
        path.pop_back();
        continue;
      }
      const RuleId callee = own[next++];
      if (marks[callee] == Mark::kOpen) {
        return base::WithHint(
            MakeError(ErrorCode::kUsage,
                      "rule '{}' is left-recursive: it can call itself before it has read anything",
                      name_of(callee)),
            "write a repeat instead: for  a ::= a \"x\" | \"y\"  write  a ::= \"y\" \"x\"*");
      }
      if (marks[callee] == Mark::kNew) path.push_back({callee, 0});
    }
  }
  return base::Success();
}

}  // namespace

base::Result<Grammar> FinishGrammar(Grammar written,
                                    const std::function<std::string(RuleId)>& name_of) {
  TermPool& pool = *written.pool;
  {
    // The empty text moves from the rules to their calls.
    const TermFacts nullable(written, /*of_chars=*/false);
    const auto now = RewriteCalls(pool, [&](RuleId rule) {
      return nullable.rule(rule) ? pool.Alternate(pool.Call(rule), kEmptyTerm) : pool.Call(rule);
    });
    for (TermId& body : written.rules) body = pool.WithoutEmpty(now[body]);
    written.start = now[written.start];
  }
  {
    const TermFacts productive(written, /*of_chars=*/true);
    const auto now = RewriteCalls(
        pool, [&](RuleId rule) { return productive.rule(rule) ? pool.Call(rule) : kNothingTerm; });
    for (TermId& body : written.rules) body = now[body];
    written.start = now[written.start];
  }
  if (written.start == kNothingTerm) {
    return MakeError(ErrorCode::kUsage, "no text satisfies this constraint");
  }
  KV_TRY(SetRanks(written, name_of));
  KV_TRY(CheckNestedRepeats(written));
  return written;
}

base::Result<void> CheckNestedRepeats(const Grammar& grammar) {
  const TermPool& pool = *grammar.pool;
  // [terms] the greatest product of counts on a way into the term, and how many counts it has.
  struct Nest {
    std::uint64_t product = 1;
    int counts = 0;
  };
  std::vector<Nest> nests(pool.size());
  std::vector<bool> used(pool.size(), false);
  used[grammar.start] = true;
  for (const TermId body : grammar.rules) used[body] = true;
  for (TermId id = static_cast<TermId>(pool.size()); id-- > 0;) {
    const Term& term = pool.term(id);
    const bool one = term.kind == TermKind::kRepeat;
    const bool two = term.kind == TermKind::kConcat || term.kind == TermKind::kAlternate;
    if (!used[id] || (!one && !two)) continue;
    used[term.a] = true;
    if (two) used[term.b] = true;
  }
  for (TermId id = 0; id < nests.size(); ++id) {
    const Term& term = pool.term(id);
    if (term.kind == TermKind::kConcat || term.kind == TermKind::kAlternate) {
      const Nest &a = nests[term.a], &b = nests[term.b];
      nests[id] = a.product >= b.product ? a : b;
    } else if (term.kind == TermKind::kRepeat) {
      nests[id] = nests[term.a];
      const std::uint64_t count = term.max == kNoMaximum ? term.min : term.max;
      if (count <= 1) continue;
      const auto product = base::CheckedMul(nests[id].product, count);
      nests[id] = {product.value_or(kNoMaximum), nests[id].counts + 1};
      if (used[id] && nests[id].counts > 1 && nests[id].product > kMaxNestedRepeat) {
        return MakeError(ErrorCode::kUsage,
                         "counted repeats inside each other multiply to more than {}, the limit",
                         kMaxNestedRepeat);
      }
    }
  }
  return base::Success();
}

}  // namespace kvasir::constraints
