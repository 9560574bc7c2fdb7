// Tone and rhyme group of Chinese characters, as Tang poets used them.
#ifndef KVASIR_CONSTRAINTS_TONE_TABLE_H_
#define KVASIR_CONSTRAINTS_TONE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kvasir::constraints {

// Bit g: rhyme group g.
using RhymeGroups = std::uint32_t;
inline constexpr std::size_t kMaxRhymeGroups = 32;

// What is known of one character. Both tones may be possible (看 rhymes level or ends an oblique
// line); of a character that no table has, neither is known.
struct Sound {
  bool level = false;
  bool oblique = false;
  RhymeGroups groups = 0;  // Of its level readings; 0 if unknown.

  bool known() const { return level || oblique; }
  friend bool operator==(const Sound&, const Sound&) = default;
};

// "level", "oblique", "level or oblique", "of unknown tone".
std::string_view DescribeTone(const Sound& sound);

// One rhyme group as text: each character of members once, the most rhymed first.
struct RhymeGroupText {
  std::string_view name;
  std::string_view members;
};

// A table as text; each string is a list of characters.
struct ToneTexts {
  std::string_view level;
  std::string_view oblique;
  std::string_view both;
  std::span<const RhymeGroupText> groups;
};

// Immutable, thread-safe; keeps nothing of the texts. Invariants: a member of a group can be level;
// there are at most kMaxRhymeGroups groups.
class ToneTable {
 public:
  // The table made from the Tang poems by tools/make_tone_table.py: simplified characters.
  static const ToneTable& Shipped();

  // kBadData naming what is wrong: not UTF-8, a character with two tones or twice in a group, a
  // member that cannot be level, too many groups, a group without a name or two with the same.
  static base::Result<ToneTable> Make(const ToneTexts& texts);

  Sound Find(std::uint32_t code_point) const;

  std::size_t groups() const { return names_.size(); }
  const std::string& GroupName(std::size_t group) const { return names_[group]; }

  // The group that has this name, or the only one that this character rhymes in. kUsage for
  // another text, naming the groups.
  base::Result<std::size_t> FindGroup(std::string_view text) const;

 private:
  std::vector<std::pair<std::uint32_t, Sound>> sounds_;  // Ascending, code points distinct.
  std::vector<std::string> names_;                       // [groups]
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TONE_TABLE_H_
