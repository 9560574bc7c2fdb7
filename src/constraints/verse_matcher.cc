#include "constraints/verse_matcher.h"

#include "base/check.h"

namespace kvasir::constraints {

bool VerseMatcher::Accept(base::TokenId token) {
  const std::size_t slot = form_.accepted_tokens();
  if (!form_.Accept(token)) return false;
  const FormPlace& place = plan_->form()->places()[slot];
  VerseState after =
      plan_->IsFree(place) ? plan_->Advance(states_.back(), place, token) : states_.back();
  if (after.dead()) {
    form_.Rollback(1);
    return false;
  }
  states_.push_back(std::move(after));
  return true;
}

void VerseMatcher::Mask(base::TokenMask& mask) const {
  form_.Mask(mask);
  if (IsComplete() || plan_->form()->slots()[accepted_tokens()]) return;
  plan_->Mask(states_.back(), plan_->form()->places()[accepted_tokens()], mask);
}

void VerseMatcher::Rollback(std::size_t n) {
  form_.Rollback(n);
  states_.resize(states_.size() - n);
}

base::Result<std::unique_ptr<Matcher>> MakeRuledMatcher(const tokenizer::Vocabulary& vocabulary,
                                                        std::span<const FormLine> lines,
                                                        const VerseRules& rules,
                                                        const ToneTable& table) {
  if (!rules.any()) return MakeFormMatcher(vocabulary, lines);
  KV_TRY(VersePlan plan, VersePlan::Compile(vocabulary, lines, rules, table));
  return std::unique_ptr<Matcher>(
      std::make_unique<VerseMatcher>(std::make_shared<const VersePlan>(std::move(plan))));
}

}  // namespace kvasir::constraints
