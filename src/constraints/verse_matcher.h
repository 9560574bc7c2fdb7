// VerseMatcher: a form whose lines keep the rules of tone and rhyme.
#ifndef KVASIR_CONSTRAINTS_VERSE_MATCHER_H_
#define KVASIR_CONSTRAINTS_VERSE_MATCHER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "constraints/constraint.h"
#include "constraints/form_matcher.h"
#include "constraints/verse_plan.h"
#include "constraints/verse_rules.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// The form decides what is a head, punctuation or free (form_matcher.h), the plan which characters
// may be taken for the free places (verse_plan.h). Remembers the state before each token, so
// Rollback costs nothing.
class VerseMatcher final : public Matcher {
 public:
  explicit VerseMatcher(std::shared_ptr<const VersePlan> plan)
      : form_(plan->form()), plan_(std::move(plan)), states_{plan_->start()} {}

  bool Accept(base::TokenId token) override;
  void Mask(base::TokenMask& mask) const override;
  void Rollback(std::size_t n) override;
  bool MayEnd() const override { return form_.MayEnd(); }
  bool IsComplete() const override { return form_.IsComplete(); }
  std::vector<base::TokenId> ForcedTokens() const override { return form_.ForcedTokens(); }
  std::size_t accepted_tokens() const override { return form_.accepted_tokens(); }
  std::optional<std::size_t> MaxRemainingTokens() const override {
    return form_.MaxRemainingTokens();
  }
  std::unique_ptr<Matcher> Clone() const override { return std::make_unique<VerseMatcher>(*this); }

 private:
  FormMatcher form_;
  std::shared_ptr<const VersePlan> plan_;
  std::vector<VerseState> states_;  // [accepted tokens + 1]; none is dead
};

// A matcher of these lines at their start: by the rules, or of the form alone if there are none.
// Errors: CompiledForm's, and VersePlan's.
base::Result<std::unique_ptr<Matcher>> MakeRuledMatcher(
    const tokenizer::Vocabulary& vocabulary, std::span<const FormLine> lines,
    const VerseRules& rules, const ToneTable& table = ToneTable::Shipped());

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_MATCHER_H_
