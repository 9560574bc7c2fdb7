#include "constraints/verse_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

struct SingleRule {
  std::string_view name;
  bool VerseRules::*member;
  bool of_tones;  // Else of rhyme.
};

constexpr std::array<SingleRule, 6> kSingleRules = {{
    {"opposition", &VerseRules::opposition, true},
    {"adhesion", &VerseRules::adhesion, true},
    {"lone-level", &VerseRules::lone_level, true},
    {"three-levels", &VerseRules::three_levels, true},
    {"rescue", &VerseRules::rescue, true},
    {"new-words", &VerseRules::new_words, false},
}};

}  // namespace

std::string VerseRuleNames() {
  std::string names;
  for (const SingleRule& rule : kSingleRules) {
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

base::Result<VerseRules> MakeVerseRules(const VerseRequest& request, const ToneTable& table) {
  VerseRules rules{.tones = request.tones, .rhyme = request.rhyme};
  if (request.rhyme_group) {
    if (!request.rhyme) {
      return MakeError(ErrorCode::kUsage, "a rhyme group was given, but no rhyme was asked for");
    }
    KV_TRY(rules.rhyme_group, table.FindGroup(*request.rhyme_group));
  }
  for (const std::string& name : request.without) {
    const auto rule = std::ranges::find(kSingleRules, name, &SingleRule::name);
    if (rule == kSingleRules.end()) {
      return MakeError(ErrorCode::kUsage, "rule '{}' is not known: it must be one of {}", name,
                       VerseRuleNames());
    }
    if (rule->of_tones ? !request.tones : !request.rhyme) {
      return MakeError(ErrorCode::kUsage, "rule '{}' is switched off, but no {} asked for", name,
                       rule->of_tones ? "tones were" : "rhyme was");
    }
    rules.*(rule->member) = false;
  }
  return rules;
}

}  // namespace kvasir::constraints
