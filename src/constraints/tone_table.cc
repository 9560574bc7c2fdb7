#include "constraints/tone_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/utf8.h"
#include "constraints/han_character.h"
#include "constraints/tone_data_generated.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using Entry = std::pair<std::uint32_t, Sound>;

bool Before(const Entry& entry, std::uint32_t code_point) { return entry.first < code_point; }

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name;
  return text;
}

// The entry of a code point in ascending entries, or null.
Entry* Lookup(std::vector<Entry>& entries, std::uint32_t code_point) {
  const auto found = std::lower_bound(entries.begin(), entries.end(), code_point, Before);
  return found != entries.end() && found->first == code_point ? &*found : nullptr;
}

// Adds a group's bit to its members.
base::Result<void> AddGroup(const RhymeGroupText& text, std::size_t group,
                            std::vector<Entry>& entries) {
  KV_TRY(const auto members, base::Utf8ToCodePoints(text.members));
  const RhymeGroups bit = RhymeGroups{1} << group;
  for (const std::uint32_t member : members) {
    Entry* entry = Lookup(entries, member);
    if (entry == nullptr || !entry->second.level) {
      return MakeError(ErrorCode::kBadData, "rhyme group {} has {}, which cannot be level",
                       text.name, DescribeCharacter(member));
    }
    if ((entry->second.groups & bit) != 0) {
      return MakeError(ErrorCode::kBadData, "rhyme group {} has {} twice", text.name,
                       DescribeCharacter(member));
    }
    entry->second.groups |= bit;
  }
  return base::Success();
}

}  // namespace

std::string_view DescribeTone(const Sound& sound) {
  if (sound.level) return sound.oblique ? "level or oblique" : "level";
  return sound.oblique ? "oblique" : "of unknown tone";
}

const ToneTable& ToneTable::Shipped() {
  static const ToneTable table =
      Make({tone_data::kLevel, tone_data::kOblique, tone_data::kBoth, tone_data::kGroups}).value();
  return table;
}

base::Result<ToneTable> ToneTable::Make(const ToneTexts& texts) {
  if (texts.groups.size() > kMaxRhymeGroups) {
    return MakeError(ErrorCode::kBadData, "{} rhyme groups are too many: at most {} are allowed",
                     texts.groups.size(), kMaxRhymeGroups);
  }
  ToneTable table;
  const std::pair<std::string_view, Sound> tones[] = {{texts.level, {true, false, 0}},
                                                      {texts.oblique, {false, true, 0}},
                                                      {texts.both, {true, true, 0}}};
  for (const auto& [characters, sound] : tones) {
    KV_TRY(const auto code_points, base::Utf8ToCodePoints(characters));
    for (const std::uint32_t c : code_points) table.sounds_.emplace_back(c, sound);
  }
  const auto by_character = [](const Entry& a, const Entry& b) { return a.first < b.first; };
  std::sort(table.sounds_.begin(), table.sounds_.end(), by_character);
  const auto twice =
      std::adjacent_find(table.sounds_.begin(), table.sounds_.end(),
                         [](const Entry& a, const Entry& b) { return a.first == b.first; });
  if (twice != table.sounds_.end()) {
    return MakeError(ErrorCode::kBadData, "{} stands twice among the tones",
                     DescribeCharacter(twice->first));
  }
  for (std::size_t g = 0; g < texts.groups.size(); ++g) {
    const std::string name(texts.groups[g].name);
    if (name.empty() || std::ranges::find(table.names_, name) != table.names_.end()) {
      return MakeError(ErrorCode::kBadData, "rhyme group {} needs a name of its own, not '{}'",
                       g + 1, name);
    }
    KV_TRY(AddGroup(texts.groups[g], g, table.sounds_));
    table.names_.push_back(name);
  }
  return table;
}

Sound ToneTable::Find(std::uint32_t code_point) const {
  const auto found = std::lower_bound(sounds_.begin(), sounds_.end(), code_point, Before);
  return found != sounds_.end() && found->first == code_point ? found->second : Sound{};
}

base::Result<std::size_t> ToneTable::FindGroup(std::string_view text) const {
  const auto named = std::ranges::find(names_, text);
  if (named != names_.end()) return static_cast<std::size_t>(named - names_.begin());
  const auto character = SingleHanCharacter(text);
  const RhymeGroups groups = character ? Find(*character).groups : 0;
  if (std::has_single_bit(groups)) return static_cast<std::size_t>(std::countr_zero(groups));
  std::vector<std::string> choice;
  for (std::size_t g = 0; g < names_.size(); ++g) {
    if ((groups >> g & 1) != 0) choice.push_back(names_[g]);
  }
  const std::string shown =
      character ? DescribeCharacter(*character) : "'" + base::ReplaceInvalidUtf8(text) + "'";
  if (!choice.empty()) {
    return MakeError(ErrorCode::kUsage, "{} rhymes in more than one group: name one of {}", shown,
                     Joined(choice));
  }
  return MakeError(ErrorCode::kUsage,
                   "{} is no rhyme group: it must be one of {}, or a character that rhymes in one",
                   shown, Joined(names_));
}

}  // namespace kvasir::constraints
