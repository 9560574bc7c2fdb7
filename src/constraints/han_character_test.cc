#include "constraints/han_character.h"

#include <gtest/gtest.h>

namespace kvasir::constraints {
namespace {

TEST(HanCharacter, Ranges) {
  for (std::uint32_t c : {0x3400u, 0x4E00u, 0x6625u, 0x9FFFu, 0x20000u, 0x2FFFFu}) {
    EXPECT_TRUE(IsHan(c)) << std::hex << c;
  }
  // 〇, a compatibility form, punctuation, letters, emoji, the neighbours of both ranges.
  for (std::uint32_t c : {0x3007u, 0xF900u, 0xFF0Cu, 0x3002u, 0x41u, 0x1F409u, 0x33FFu, 0xA000u,
                          0x1FFFFu, 0x30000u, 0xAC00u}) {
    EXPECT_FALSE(IsHan(c)) << std::hex << c;
  }
}

TEST(HanCharacter, SingleHanCharacterWantsExactlyOne) {
  EXPECT_EQ(SingleHanCharacter("春"), 0x6625u);
  EXPECT_EQ(SingleHanCharacter("𠮷"), 0x20BB7u);
  for (std::string_view bytes :
       {"", "春风", "春。", "，", "a", "\n", "\xE6", "\xE6\x98", "春\xE6"}) {
    EXPECT_FALSE(SingleHanCharacter(bytes).has_value()) << bytes;
  }
}

TEST(HanCharacter, DescriptionsFitOnALine) {
  EXPECT_EQ(DescribeCharacter(0x6625), "'春' (U+6625)");
  EXPECT_EQ(DescribeCharacter(0x1F409), "'🐉' (U+1F409)");
  for (std::uint32_t c :
       {0x0Au, 0x1Bu, 0x20u, 0x85u, 0x2028u, 0x202Eu, 0x3000u, 0xFE0Fu, 0xFEFFu}) {
    EXPECT_TRUE(DescribeCharacter(c).starts_with("U+")) << std::hex << c;
  }
}

TEST(ParseHeads, TakesHanCharacters) {
  EXPECT_EQ(ParseHeads("春𠮷").value(), (std::vector<std::uint32_t>{0x6625, 0x20BB7}));
}

TEST(ParseHeads, RefusesEverythingElseByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no heads"},
      {"春，不", "head 2 is '，' (U+FF0C)"},
      {"。", "head 1 is '。' (U+3002)"},
      {"春🐉", "head 2 is '🐉' (U+1F409)"},
      {"春 眠", "head 2 is U+0020"},
      {"春\n", "head 2 is U+000A"},
      {"A", "head 1 is 'A' (U+0041)"},
      {"〇", "head 1 is '〇' (U+3007)"},
      {"春\xFF", "byte 0xFF at offset 3"},
      {"春\xE6\x98", "byte 0xE6 at offset 3"},
  };
  for (const auto& [text, message] : cases) {
    const auto result = ParseHeads(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace kvasir::constraints
