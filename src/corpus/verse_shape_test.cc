#include "corpus/verse_shape.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::corpus {
namespace {

// A poem of this many lines of this many characters.
std::string Poem(int lines, int length, const std::string& character = "春") {
  std::string poem;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < length; ++i) poem += character;
    poem += line % 2 == 0 ? "，" : "。";
  }
  return poem;
}

TEST(VerseShape, KeepsFourOrEightLinesOfFiveOrSeven) {
  for (int lines = 0; lines <= 12; ++lines) {
    for (int length = 0; length <= 9; ++length) {
      const bool regular = (lines == 4 || lines == 8) && (length == 5 || length == 7);
      EXPECT_EQ(IsRegularVerse(Poem(lines, length)), regular) << lines << " x " << length;
    }
  }
}

TEST(VerseShape, KeepsHanOnly) {
  EXPECT_TRUE(IsRegularVerse(Poem(4, 5, "𭘵")));
  EXPECT_TRUE(IsRegularVerse(Poem(4, 5, "㑹")));
  for (const char* other : {"〇", "\uF900", "a", "あ", "□", " ", "\n", "\xff"}) {
    EXPECT_FALSE(IsRegularVerse(Poem(4, 5, other))) << other;
  }
}

TEST(VerseShape, HanRangesEndWhereTheyShould) {
  for (const std::uint32_t han : {0x3400u, 0x4E00u, 0x9FFFu, 0x20000u, 0x2FFFFu}) {
    EXPECT_TRUE(IsCorpusHan(han)) << han;
  }
  for (const std::uint32_t other :
       {0x33FFu, 0x3007u, 0xA000u, 0xF900u, 0xFAFFu, 0x1FFFFu, 0x30000u}) {
    EXPECT_FALSE(IsCorpusHan(other)) << other;
  }
}

TEST(VerseShape, PunctuationMustAlternate) {
  const std::string line = "春春春春春";
  EXPECT_TRUE(IsRegularVerse(line + "，" + line + "。" + line + "，" + line + "。"));
  EXPECT_FALSE(IsRegularVerse(line + "。" + line + "，" + line + "。" + line + "，"));
  EXPECT_FALSE(IsRegularVerse(line + "，" + line + "，" + line + "，" + line + "。"));
  EXPECT_FALSE(IsRegularVerse(line + "，" + line + "？" + line + "，" + line + "。"));
  EXPECT_FALSE(IsRegularVerse(line + "," + line + "." + line + "," + line + "."));
  EXPECT_FALSE(IsRegularVerse(line + "，" + line + "。" + line + "，" + line));
  EXPECT_FALSE(IsRegularVerse(Poem(4, 5) + "春"));
  EXPECT_FALSE(IsRegularVerse(Poem(4, 5) + "\xE6\x98"));
}

TEST(VerseShape, LinesMustBeOfOneLength) {
  const std::string five = "春春春春春";
  const std::string seven = five + "春春";
  EXPECT_FALSE(IsRegularVerse(five + "，" + five + "。" + seven + "，" + seven + "。"));
  EXPECT_FALSE(IsRegularVerse(seven + "，" + seven + "。" + seven + "，" + five + "。"));
}

}  // namespace
}  // namespace kvasir::corpus
