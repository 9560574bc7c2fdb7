#include "constraints/verse_rules.h"

#include <gtest/gtest.h>

namespace kvasir::constraints {
namespace {

std::string Refusal(const VerseRequest& request) {
  const auto result = MakeVerseRules(request);
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
  return result.has_value() ? std::string() : result.error().message;
}

TEST(VerseRules, EachRuleCanBeSwitchedOff) {
  const VerseRules all = MakeVerseRules({.tones = true, .rhyme = true}).value();
  EXPECT_TRUE(all.any() && all.tones && all.rhyme && !all.rhyme_group);
  const std::pair<const char*, bool VerseRules::*> rules[] = {
      {"opposition", &VerseRules::opposition}, {"adhesion", &VerseRules::adhesion},
      {"lone-level", &VerseRules::lone_level}, {"three-levels", &VerseRules::three_levels},
      {"rescue", &VerseRules::rescue},         {"new-words", &VerseRules::new_words}};
  for (const auto& [name, member] : rules) {
    EXPECT_TRUE(all.*member) << name;
    EXPECT_NE(VerseRuleNames().find(name), std::string::npos);
    const VerseRules less =
        MakeVerseRules({.tones = true, .rhyme = true, .rhyme_group = {}, .without = {name}})
            .value();
    for (const auto& [other, other_member] : rules) {
      EXPECT_EQ(less.*other_member, other_member != member) << name << " " << other;
    }
  }
  EXPECT_FALSE(VerseRules{}.any());
}

TEST(VerseRules, TheRhymeGroupIsLookedUp) {
  const VerseRules rules =
      MakeVerseRules({.tones = false, .rhyme = true, .rhyme_group = "风", .without = {}}).value();
  EXPECT_EQ(ToneTable::Shipped().GroupName(rules.rhyme_group.value()), "东");
  EXPECT_NE(Refusal({.tones = false, .rhyme = true, .rhyme_group = "月", .without = {}})
                .find("no rhyme group"),
            std::string::npos);
  EXPECT_NE(Refusal({.tones = false, .rhyme = true, .rhyme_group = "", .without = {}})
                .find("no rhyme group"),
            std::string::npos);
}

TEST(VerseRules, ContradictionsAreRefused) {
  EXPECT_EQ(Refusal({.tones = true, .rhyme = false, .rhyme_group = "东", .without = {}}),
            "a rhyme group was given, but no rhyme was asked for");
  EXPECT_EQ(Refusal({.tones = false, .rhyme = true, .rhyme_group = {}, .without = {"rescue"}}),
            "rule 'rescue' is switched off, but no tones were asked for");
  EXPECT_EQ(Refusal({.tones = true, .rhyme = false, .rhyme_group = {}, .without = {"new-words"}}),
            "rule 'new-words' is switched off, but no rhyme was asked for");
  EXPECT_EQ(Refusal({.tones = true, .rhyme = true, .rhyme_group = {}, .without = {"rhyme"}}),
            "rule 'rhyme' is not known: it must be one of opposition, adhesion, lone-level, "
            "three-levels, rescue, new-words");
}

}  // namespace
}  // namespace kvasir::constraints
