// The level/oblique patterns of one line of regulated verse, and which may follow which.
#ifndef KVASIR_CONSTRAINTS_VERSE_PATTERN_H_
#define KVASIR_CONSTRAINTS_VERSE_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "constraints/tone_table.h"
#include "constraints/verse_rules.h"

namespace kvasir::constraints {

// Bit p: pattern p of a list.
using PatternSet = std::uint16_t;
inline constexpr std::size_t kMaxPatterns = 16;

// One way to write a line. Bit c of level: character c must be one that can be level; of oblique
// alike; where neither is set every character will do.
struct LinePattern {
  std::uint32_t level = 0;
  std::uint32_t oblique = 0;
  bool second_level = false;  // Of the second character: what opposition and adhesion look at.
  bool ends_level = false;
  bool wants_rescue = false;  // Allowed only if the next line rescues.
  bool rescues = false;

  bool Fits(std::size_t column, const Sound& sound) const {
    return ((level >> column & 1) == 0 || sound.level) &&
           ((oblique >> column & 1) == 0 || sound.oblique);
  }
};

// The patterns of a line of 5 or 7 characters that the rules allow, at most kMaxPatterns. Without
// tones there is one, which asks for nothing, and any number of characters will do.
std::vector<LinePattern> LinePatterns(const VerseRules& rules, std::size_t chars);

// Whether the pattern may stand in line `line` (from 0): even lines of the poem end level, odd ones
// oblique, the first as it likes. Without tones always.
bool MayStand(const VerseRules& rules, const LinePattern& pattern, std::size_t line);

// Whether `after` may stand in line `line` >= 1 behind `before`.
bool MayFollow(const VerseRules& rules, const LinePattern& before, const LinePattern& after,
               std::size_t line);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_PATTERN_H_
