#include "constraints/verse_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::constraints {
namespace {

constexpr VerseRules kTones{.tones = true};

Sound SoundOf(char tone) { return {tone == 'L', tone == 'O', 0}; }

// The patterns that a line of known tones fits.
std::vector<LinePattern> Fitting(const VerseRules& rules, const std::string& tones) {
  std::vector<LinePattern> fitting;
  for (const LinePattern& pattern : LinePatterns(rules, tones.size())) {
    bool fits = true;
    for (std::size_t i = 0; i < tones.size(); ++i) fits &= pattern.Fits(i, SoundOf(tones[i]));
    if (fits) fitting.push_back(pattern);
  }
  return fitting;
}

bool Allowed(const VerseRules& rules, const std::string& tones) {
  return !Fitting(rules, tones).empty();
}

TEST(VersePattern, TheFourKindsOfLine) {
  for (const char* line :
       {"OOLLO", "LLOOL", "LLLOO", "OOOLL", "LLOOLLO", "OOLLOOL", "OOLLLOO", "LLOOOLL"}) {
    const auto fitting = Fitting(kTones, line);
    ASSERT_EQ(fitting.size(), 1u) << line;
    EXPECT_EQ(fitting[0].second_level, line[1] == 'L');
    EXPECT_EQ(fitting[0].ends_level, std::string(line).back() == 'L');
    EXPECT_FALSE(fitting[0].wants_rescue || fitting[0].rescues);
  }
  for (const char* line : {"LLLLL", "OOOOL", "OLOLO", "LOLOL", "LOLOOLL", "OOOOLLO"}) {
    EXPECT_FALSE(Allowed(kTones, line)) << line;
  }
}

TEST(VersePattern, SingleRulesDecideSingleLines) {
  const auto decides = [](bool VerseRules::*member, const char* line, bool when_on) {
    VerseRules off = kTones;
    off.*member = false;
    for (const std::string front : {"", "L", "O"}) {
      const std::string second = line[1] == 'L' ? "O" : "L";
      const std::string tones = front.empty() ? line : front + second + line;
      EXPECT_EQ(Allowed(kTones, tones), when_on) << tones;
      EXPECT_EQ(Allowed(off, tones), !when_on) << tones;
    }
  };
  decides(&VerseRules::lone_level, "OLOOL", false);
  decides(&VerseRules::three_levels, "OOLLL", false);
  decides(&VerseRules::three_levels, "LOLLL", false);
  decides(&VerseRules::rescue, "OLLOL", true);
  decides(&VerseRules::rescue, "LLOLO", true);
  decides(&VerseRules::rescue, "OOOOO", true);
  decides(&VerseRules::rescue, "LOLOO", true);
}

// No line fits two patterns, so a pattern says how a line was meant.
TEST(VersePattern, PatternsAreDisjoint) {
  VerseRules loose = kTones;
  loose.lone_level = loose.three_levels = false;
  for (std::size_t chars : {5u, 7u}) {
    EXPECT_LE(LinePatterns(loose, chars).size(), kMaxPatterns);
    std::size_t allowed = 0;
    for (std::size_t bits = 0; bits < std::size_t{1} << chars; ++bits) {
      std::string tones;
      for (std::size_t i = 0; i < chars; ++i) tones += (bits >> i & 1) != 0 ? 'L' : 'O';
      EXPECT_LE(Fitting(loose, tones).size(), 1u) << tones;
      allowed += Fitting(loose, tones).size();
    }
    EXPECT_EQ(allowed, chars == 5 ? 20u : 40u);
  }
}

TEST(VersePattern, CouplesOpposeAndAdhere) {
  const auto one = [](const char* tones) { return Fitting(kTones, tones).at(0); };
  const LinePattern a = one("OOLLO"), b = one("LLOOL"), c = one("LLLOO"), d = one("OOOLL");
  EXPECT_TRUE(MayFollow(kTones, a, b, 1));
  EXPECT_FALSE(MayFollow(kTones, a, d, 1));
  EXPECT_TRUE(MayFollow(kTones, b, c, 2));
  EXPECT_FALSE(MayFollow(kTones, b, a, 2));
  EXPECT_FALSE(MayFollow(kTones, b, d, 2));  // Odd lines end oblique.
  EXPECT_FALSE(MayFollow(kTones, a, c, 1));  // Even ones level.
  VerseRules loose = kTones;
  loose.opposition = false;
  EXPECT_TRUE(MayFollow(loose, a, d, 1));
  loose.adhesion = false;
  EXPECT_TRUE(MayFollow(loose, b, a, 2));
  EXPECT_TRUE(MayStand(kTones, b, 0));
  EXPECT_TRUE(MayStand(kTones, a, 0));
  EXPECT_FALSE(MayStand(kTones, b, 2));
}

TEST(VersePattern, AGreatRescueNeedsTheNextLine) {
  const LinePattern swapped = Fitting(kTones, "OOOOO").at(0);
  EXPECT_TRUE(swapped.wants_rescue);
  EXPECT_TRUE(MayFollow(kTones, swapped, Fitting(kTones, "LLLOL").at(0), 1));
  EXPECT_TRUE(MayFollow(kTones, swapped, Fitting(kTones, "OLLOL").at(0), 1));
  EXPECT_FALSE(MayFollow(kTones, swapped, Fitting(kTones, "LLOOL").at(0), 1));
}

TEST(VersePattern, WithoutTonesEverythingFits) {
  const auto patterns = LinePatterns({.tones = false, .rhyme = true}, 7);
  ASSERT_EQ(patterns.size(), 1u);
  EXPECT_TRUE(patterns[0].Fits(6, Sound{}));
  EXPECT_TRUE(MayFollow({.tones = false, .rhyme = true}, patterns[0], patterns[0], 1));
}

}  // namespace
}  // namespace kvasir::constraints
