// The rules of regulated verse, each of which can be switched off: docs/verse.md.
#ifndef KVASIR_CONSTRAINTS_VERSE_RULES_H_
#define KVASIR_CONSTRAINTS_VERSE_RULES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "constraints/tone_table.h"

namespace kvasir::constraints {

// What a poem must keep beyond its form. Source of the rules: Wang Li, 诗词格律 (1962), chapter 2.
struct VerseRules {
  // Each line has a level/oblique pattern; no character of unknown tone is used.
  bool tones = false;
  bool rhyme = false;  // The even lines, and the first if it likes, end in one level rhyme group.
  std::optional<std::size_t> rhyme_group = std::nullopt;  // That one; else any.

  // Of tones:
  bool opposition = true;    // 对: the second characters of a couplet's two lines are opposite.
  bool adhesion = true;      // 粘: those of neighbouring couplets' inner lines are alike.
  bool lone_level = true;    // 孤平: no rhyming line with one level tone besides its rhyme.
  bool three_levels = true;  // 三平尾: no line ends in three level tones.
  bool rescue = true;  // 拗救: a place out of tone is allowed where another makes up for it.
  // Of rhyme:
  bool new_words = true;  // No character ends two of line 1 and the even lines.

  bool any() const { return tones || rhyme; }
};

// The rules as a person asks for them.
struct VerseRequest {
  bool tones = false;
  bool rhyme = false;
  std::optional<std::string> rhyme_group = std::nullopt;  // Nothing: any.
  std::vector<std::string> without = {};                  // Names of single rules.
};

// The names of the single rules, in a line: "opposition, adhesion, …".
std::string VerseRuleNames();

// kUsage for a rule or rhyme group that is not known, and for settings that contradict each other:
// a rhyme group without rhyme, a rule switched off that is not asked for.
base::Result<VerseRules> MakeVerseRules(const VerseRequest& request,
                                        const ToneTable& table = ToneTable::Shipped());

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_RULES_H_
