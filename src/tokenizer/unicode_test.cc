#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

TEST(Unicode, Classes) {
  for (const std::uint32_t c : {0x41u, 0xE9u, 0x17Fu, 0x1C5u, 0x2B0u, 0x5D0u, 0x6625u, 0x1F110u}) {
    EXPECT_EQ(ClassOf(c), c == 0x1F110 ? CharacterClass::kOther : CharacterClass::kLetter) << c;
  }
  for (const std::uint32_t c : {0x30u, 0xB2u, 0xBDu, 0x660u, 0x2160u, 0x3007u}) {
    EXPECT_EQ(ClassOf(c), CharacterClass::kNumber) << c;
  }
  // Marks, punctuation, symbols, controls, unassigned, private, and what only looks like a space.
  for (const std::uint32_t c : {0x300u, 0x21u, 0x3002u, 0x1F409u, 0x00u, 0x1Bu, 0x1Cu, 0x200Bu,
                                0x180Eu, 0xFEFFu, 0x378u, 0xE000u, 0x10FFFFu}) {
    EXPECT_EQ(ClassOf(c), CharacterClass::kOther) << c;
  }
}

// PropList.txt has 25 of them.
TEST(Unicode, WhiteSpace) {
  int count = 0;
  for (std::uint32_t c = 0; c < 0x110000; ++c) count += ClassOf(c) == CharacterClass::kSpace;
  EXPECT_EQ(count, 25);
  for (const std::uint32_t c : {0x09u, 0x0Du, 0x20u, 0x85u, 0xA0u, 0x2003u, 0x2029u, 0x3000u}) {
    EXPECT_EQ(ClassOf(c), CharacterClass::kSpace) << c;
  }
}

TEST(Unicode, ComposesAsTheStandardSays) {
  EXPECT_EQ(ToNfc("e\u0301"), "é");
  EXPECT_EQ(ToNfc("\u1100\u1161\u11A8"), "각");
  EXPECT_EQ(ToNfc("\u212B"), "Å");                     // A singleton decomposes and composes anew.
  EXPECT_EQ(ToNfc("\u0958"), "\u0915\u093C");          // Excluded from composition.
  EXPECT_EQ(ToNfc("\uFB01"), "\uFB01");                // A compatibility form stays.
  EXPECT_EQ(ToNfc("q\u0307\u0323"), "q\u0323\u0307");  // Marks in canonical order.
  EXPECT_EQ(ToNfc("s\u0323\u0307"), "\u1E69");
  EXPECT_EQ(ToNfc("a\u0315\u0300\u05AE"), "\u00E0\u05AE\u0315");
  EXPECT_EQ(ToNfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(ToNfc("春风 abc é"), "春风 abc é");
  EXPECT_EQ(ToNfc(""), "");
}

TEST(Unicode, ComposingTwiceChangesNothing) {
  for (std::uint32_t c = 1; c < 0x30000; c += 7) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    for (const std::uint32_t point : {c, 0x323u, 0x301u}) base::AppendUtf8(point, text);
    const std::string once = ToNfc(text);
    ASSERT_EQ(ToNfc(once), once) << c;
  }
}

// An insertion sort would need minutes.
TEST(Unicode, LongRunsOfMarks) {
  std::string marks;
  for (int i = 0; i < 200'000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string composed = ToNfc("a" + marks);
  EXPECT_TRUE(composed.starts_with("\u1EA1\u0323")) << composed.substr(0, 12);
  EXPECT_EQ(composed.size(), marks.size() - 2 + 3);
}

}  // namespace
}  // namespace kvasir::tokenizer
