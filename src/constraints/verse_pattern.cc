#include "constraints/verse_pattern.h"

#include <iterator>
#include <string_view>

#include "base/check.h"

namespace kvasir::constraints {
namespace {

// Which rule must be on, or off, for a pattern to be allowed.
enum class Only { kAlways, kRescue, kNoLoneLevel, kNoThreeLevels };

struct Row {
  std::string_view tones;  // L level, O oblique, x either
  Only only;
  bool wants_rescue;
  bool rescues;
};

// Lines of five. A line of seven puts two in front: the first is free, the second opposite to the
// second here. Places that tradition frees are x, unless freeing them would leave a level tone
// alone between obliques or make three level tones at the end.
constexpr Row kRows[] = {
    {"xOxLO", Only::kAlways, false, false},
    {"xOxOO", Only::kRescue, true, false},  // 大拗: the next line's third must be level.
    {"LLOOL", Only::kAlways, false, false},
    {"LLLOL", Only::kAlways, false, true},
    {"OLLOL", Only::kRescue, false, true},  // 孤平拗救: the third makes up for the first.
    {"OLOOL", Only::kNoLoneLevel, false, false},
    {"xLLOO", Only::kAlways, false, false},
    {"LLOOO", Only::kAlways, false, false},
    {"LLOLO", Only::kRescue, false, false},  // 特拗: third and fourth change places.
    {"xOOLL", Only::kAlways, false, false},
    {"xOLLL", Only::kNoThreeLevels, false, false},
};
static_assert(std::size(kRows) <= kMaxPatterns);

bool Allowed(const VerseRules& rules, Only only) {
  switch (only) {
    case Only::kAlways:
      return true;
    case Only::kRescue:
      return rules.rescue;
    case Only::kNoLoneLevel:
      return !rules.lone_level;
    case Only::kNoThreeLevels:
      return !rules.three_levels;
  }
  return false;
}

LinePattern PatternOf(const Row& row, std::size_t chars) {
  LinePattern pattern;
  const auto set = [&](std::size_t column, char tone) {
    if (tone == 'L') pattern.level |= 1u << column;
    if (tone == 'O') pattern.oblique |= 1u << column;
  };
  const std::size_t front = chars - row.tones.size();
  if (front > 0) set(1, row.tones[1] == 'L' ? 'O' : 'L');
  for (std::size_t i = 0; i < row.tones.size(); ++i) set(front + i, row.tones[i]);
  pattern.second_level = (pattern.level >> 1 & 1) != 0;
  pattern.ends_level = row.tones.back() == 'L';
  pattern.wants_rescue = row.wants_rescue;
  pattern.rescues = row.rescues;
  return pattern;
}

}  // namespace

std::vector<LinePattern> LinePatterns(const VerseRules& rules, std::size_t chars) {
  if (!rules.tones) return {LinePattern{}};
  KV_CHECK(chars == 5 || chars == 7);
  std::vector<LinePattern> patterns;
  for (const Row& row : kRows) {
    if (Allowed(rules, row.only)) patterns.push_back(PatternOf(row, chars));
  }
  return patterns;
}

bool MayStand(const VerseRules& rules, const LinePattern& pattern, std::size_t line) {
  if (!rules.tones || line == 0) return true;
  return pattern.ends_level == (line % 2 == 1);
}

bool MayFollow(const VerseRules& rules, const LinePattern& before, const LinePattern& after,
               std::size_t line) {
  if (!MayStand(rules, after, line)) return false;
  if (before.wants_rescue && !after.rescues) return false;
  const bool alike = before.second_level == after.second_level;
  if (!rules.tones) return true;
  return line % 2 == 1 ? !rules.opposition || !alike : !rules.adhesion || alike;
}

}  // namespace kvasir::constraints
