#include "constraints/constraint_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "constraints/choices.h"
#include "constraints/gbnf.h"
#include "constraints/regex.h"

namespace kvasir::constraints {
namespace {

// States that a kept constraint may have grown to; a larger one is compiled anew.
constexpr std::size_t kMostStates = 100'000;

// Different specs have different keys.
std::string KeyOf(const ConstraintSpec& spec) {
  std::string key =
      fmt::format("{} {}{}{} {}", static_cast<int>(spec.kind), spec.json.assert_formats ? 1 : 0,
                  spec.json.compact ? 1 : 0, spec.json.outer_blanks ? 1 : 0, spec.max_bytes);
  for (const std::string& text : spec.texts) key += fmt::format(" {}:{}", text.size(), text);
  return key;
}

}  // namespace

base::Result<Grammar> CompileGrammar(const ConstraintSpec& spec) {
  KV_CHECK(spec.kind == ConstraintKind::kChoices || spec.texts.size() == 1);
  switch (spec.kind) {
    case ConstraintKind::kRegex:
      return CompileRegex(spec.texts.front());
    case ConstraintKind::kJsonSchema:
      return CompileJsonSchema(spec.texts.front(), spec.json);
    case ConstraintKind::kGrammar:
      return CompileGbnf(spec.texts.front());
    case ConstraintKind::kChoices:
      return CompileChoices(spec.texts);
  }
  KV_CHECK(false);
}

base::Result<TextVerdict> Judge(Recognizer& recognizer, std::string_view text) {
  TextVerdict verdict;
  StateId state = recognizer.start();
  for (; verdict.position < text.size(); ++verdict.position) {
    state = recognizer.Step(state, static_cast<std::uint8_t>(text[verdict.position]));
    KV_TRY(recognizer.Status());
    if (state == kDeadState) return verdict;
  }
  verdict.accepted = true;
  verdict.complete = recognizer.MayEnd(state);
  return verdict;
}

base::Result<std::unique_ptr<Matcher>> ConstraintCompiler::Make(const ConstraintSpec& spec) {
  const std::scoped_lock lock(mutex_);
  const std::string key = KeyOf(spec);
  auto place =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.key == key; });
  if (place != kept_.end() &&
      (place->constraint->state_count() > kMostStates || !place->constraint->Status())) {
    kept_.erase(place);
    place = kept_.end();
  }
  if (place == kept_.end()) {
    KV_TRY(Grammar grammar, CompileGrammar(spec));
    auto constraint =
        std::make_shared<CompiledConstraint>(std::move(grammar), trie_, spec.max_bytes);
    kept_.push_front({key, std::move(constraint)});
    if (kept_.size() > kMostKept) kept_.pop_back();
  } else {
    kept_.splice(kept_.begin(), kept_, place);
  }
  auto matcher = std::make_unique<GrammarMatcher>(kept_.front().constraint);
  base::TokenMask mask(trie_->vocab_size());
  matcher->Mask(mask);
  if (mask.Count() == 0 && !matcher->MayEnd()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "the model's vocabulary cannot write the beginning of any text that "
                           "this constraint allows");
  }
  return std::unique_ptr<Matcher>(std::move(matcher));
}

}  // namespace kvasir::constraints
