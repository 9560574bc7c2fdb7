// A judge of finished poems for the tests, written from the rules of docs/verse.md as sentences
// about tones; shares nothing with the patterns and the look-ahead that it judges.
#ifndef KVASIR_CONSTRAINTS_VERSE_JUDGE_H_
#define KVASIR_CONSTRAINTS_VERSE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "constraints/tone_table.h"
#include "constraints/verse_rules.h"

namespace kvasir::constraints {

class VerseJudge {
 public:
  using Lines = std::vector<std::vector<std::uint32_t>>;  // [lines][characters]

  VerseJudge(const VerseRules& rules, const ToneTable& table) : rules_(rules), table_(table) {}

  bool Keeps(const Lines& poem) const {
    if (!rules_.rhyme) return KeepsTones(poem, true) || KeepsTones(poem, false);
    if (rules_.new_words && !WordsDiffer(poem)) return false;
    for (std::size_t group = 0; group < table_.groups(); ++group) {
      if (rules_.rhyme_group && group != *rules_.rhyme_group) continue;
      bool rhymes = true;
      for (std::size_t i = 1; i < poem.size(); i += 2) rhymes &= IsIn(poem[i].back(), group);
      if (!rhymes) continue;
      // Line 1 ends level if it rhymes, oblique if it does not.
      if (KeepsTones(poem, false)) return true;
      if (IsIn(poem[0].back(), group) && KeepsTones(poem, true)) return true;
    }
    return false;
  }

 private:
  bool IsIn(std::uint32_t c, std::size_t group) const {
    return (table_.Find(c).groups >> group & 1) != 0;
  }

  static bool WordsDiffer(const Lines& poem) {
    std::set<std::uint32_t> words = {poem[0].back()};
    std::size_t count = 1;
    for (std::size_t i = 1; i < poem.size(); i += 2, ++count) words.insert(poem[i].back());
    return words.size() == count;
  }

  // All ways to read a line, as strings of L and O.
  std::vector<std::string> Readings(const std::vector<std::uint32_t>& line) const {
    std::vector<std::string> readings = {""};
    for (const std::uint32_t c : line) {
      const Sound sound = table_.Find(c);
      std::vector<std::string> longer;
      for (const std::string& reading : readings) {
        if (sound.level) longer.push_back(reading + 'L');
        if (sound.oblique) longer.push_back(reading + 'O');
      }
      readings = longer;
    }
    return readings;
  }

  // Whether a line alone is good; swapped says that its fourth of the last five is out of tone and
  // hopes for the next line.
  bool GoodLine(const std::string& whole, bool* swapped) const {
    const std::string t = whole.substr(whole.size() - 5);
    if (whole.size() == 7 && whole[1] == t[1]) return false;
    *swapped = false;
    const bool level_end = t[4] == 'L';
    if (t[1] == t[3]) {  // The second and fourth should differ.
      if (!rules_.rescue || level_end) return false;
      if (t == "LLOLO") return true;  // Third and fourth have changed places.
      *swapped = t[1] == 'O';         // Oblique both: the next line must make up.
      return *swapped;
    }
    if (level_end && t[1] == 'O') return t[2] == 'O' || !rules_.three_levels;
    if (level_end && t[0] == 'O') return t[2] == 'L' ? rules_.rescue : !rules_.lone_level;
    if (!level_end && t[1] == 'L' && t[2] == 'O') return t[0] == 'L';
    return true;
  }

  bool KeepsTones(const Lines& poem, bool first_level) const {
    if (!rules_.tones) return true;
    std::set<std::string> before;  // Readings of the last line that the poem so far allows.
    for (std::size_t i = 0; i < poem.size(); ++i) {
      std::set<std::string> now;
      for (const std::string& t : Readings(poem[i])) {
        bool swapped = false;
        const bool level_end = t.back() == 'L';
        if (level_end != (i == 0 ? first_level : i % 2 == 1)) continue;
        if (!GoodLine(t, &swapped)) continue;
        if (swapped && i + 1 == poem.size()) continue;
        bool follows = i == 0;
        for (const std::string& b : before) follows |= Follows(b, t, i);
        if (follows) now.insert(t);
      }
      before = now;
    }
    return !before.empty();
  }

  bool Follows(const std::string& before, const std::string& t, std::size_t line) const {
    bool swapped = false;
    GoodLine(before, &swapped);
    // The rescue: a line of level second and oblique fourth, whose third of five is level.
    const std::string tail = t.substr(t.size() - 5);
    if (swapped && !(tail[1] == 'L' && tail[3] == 'O' && tail[2] == 'L')) return false;
    if (line % 2 == 1) return !rules_.opposition || before[1] != t[1];
    return !rules_.adhesion || before[1] == t[1];
  }

  const VerseRules& rules_;
  const ToneTable& table_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_JUDGE_H_
