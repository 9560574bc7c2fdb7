#include "constraints/code_point_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "constraints/unicode_class.h"
#include "constraints/utf8_automaton.h"

#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

TEST(CodePointSet, JoinsRangesAndDropsSurrogates) {
  const CodePointSet set({{5, 9}, {1, 2}, {3, 4}, {8, 12}, {20, 20}});
  EXPECT_EQ(set, CodePointSet({{1, 12}, {20, 20}}));
  EXPECT_EQ(CodePointSet::All().ranges().size(), 2u);
  EXPECT_FALSE(CodePointSet::All().Contains(0xD800));
  EXPECT_FALSE(CodePointSet::All().Contains(0xDFFF));
  EXPECT_TRUE(CodePointSet::All().Contains(0xE000));
  EXPECT_TRUE(CodePointSet::Range(0xD900, 0xDA00).empty());
  EXPECT_TRUE(CodePointSet().empty());
  EXPECT_EQ(CodePointSet().Complement(), CodePointSet::All());
  EXPECT_TRUE(CodePointSet::All().Complement().empty());
}

TEST(CodePointSet, AgreesWithSetsOfNumbers) {
  const std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  const auto make = [&](std::set<std::uint32_t>& oracle) {
    std::vector<CodePointRange> ranges;
    for (int i = 0; i < 4; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 60);
      const auto last = first + static_cast<std::uint32_t>(random() % 8);
      ranges.push_back({first, last});
      for (std::uint32_t c = first; c <= last; ++c) oracle.insert(c);
    }
    return CodePointSet(ranges);
  };
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(seed);
    std::set<std::uint32_t> x, y;
    const CodePointSet a = make(x), b = make(y);
    for (std::uint32_t c = 0; c < 80; ++c) {
      ASSERT_EQ(a.Contains(c), x.contains(c));
      ASSERT_EQ(a.Union(b).Contains(c), x.contains(c) || y.contains(c));
      ASSERT_EQ(a.Intersect(b).Contains(c), x.contains(c) && y.contains(c));
      ASSERT_EQ(a.Minus(b).Contains(c), x.contains(c) && !y.contains(c));
    }
  }
}

// Every character, and no other bytes, leads through the automaton of a set.
TEST(Utf8Automaton, AcceptsExactlyTheCharactersOfASet) {
  const CodePointSet sets[] = {
      CodePointSet::All(),
      CodePointSet::Of('a'),
      CodePointSet::Range(0x7F, 0x801),
      CodePointSet({{0x20, 0x22}, {0x3B1, 0x3C9}, {0x4E00, 0x9FA5}, {0x1F600, 0x1F64F}}),
      CodePointSet::Of(0x6625).Complement(),
      CodePointSet::Range(0xFFFF, 0x10000)};
  Utf8Automaton automaton;
  for (const CodePointSet& set : sets) {
    const ByteNode start = automaton.Add(set);
    EXPECT_EQ(automaton.Add(set), start);
    for (std::uint32_t c = 0; c <= kLastCodePoint; c += c < 0x3000 ? 1 : 7) {
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string bytes;
      base::AppendUtf8(c, bytes);
      ByteNode node = start;
      bool alive = true;
      for (std::size_t i = 0; alive && i < bytes.size(); ++i) {
        alive = false;
        for (const ByteEdge& edge : automaton.edges(node)) {
          const auto byte = static_cast<std::uint8_t>(bytes[i]);
          if (byte < edge.first || byte > edge.last) continue;
          alive = true;
          node = edge.next;
          break;
        }
      }
      ASSERT_EQ(alive && node == kWholeCharacter, set.Contains(c)) << c;
    }
  }
  // No overlong form, no surrogate, nothing above U+10FFFF begins a character.
  for (const ByteEdge& edge : automaton.edges(automaton.Add(CodePointSet::All()))) {
    EXPECT_FALSE(edge.first <= 0xC1 && edge.last >= 0x80);
    EXPECT_LE(edge.last, 0xF4);
    if (edge.first == 0xED) {
      EXPECT_EQ(automaton.edges(edge.next).back().last, 0x9F);
    }
  }
}

TEST(UnicodeClass, ByName) {
  ASSERT_NE(FindUnicodeClass("Lu"), nullptr);
  EXPECT_TRUE(FindUnicodeClass("Lu")->Contains(0xC9));
  EXPECT_FALSE(FindUnicodeClass("Lu")->Contains(0xE9));
  EXPECT_TRUE(FindUnicodeClass("L")->Contains(0xE9));
  EXPECT_TRUE(FindUnicodeClass("Nd")->Contains(0x0663));
  EXPECT_TRUE(FindUnicodeClass("Han")->Contains(0x6625));
  EXPECT_FALSE(FindUnicodeClass("Han")->Contains('a'));
  EXPECT_EQ(*FindUnicodeClass("Any"), CodePointSet::All());
  EXPECT_EQ(FindUnicodeClass("Greek"), nullptr);
  EXPECT_EQ(FindUnicodeClass(""), nullptr);
  EXPECT_EQ(FindUnicodeClass("L Lu"), nullptr);
}

}  // namespace
}  // namespace kvasir::constraints
