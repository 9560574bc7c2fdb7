#include "base/utf8.h"

#include <gtest/gtest.h>

namespace kvasir::base {
namespace {

std::size_t CountReplacements(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(kReplacement, at)) != text.npos; at += 3) ++count;
  return count;
}

TEST(Utf8, EveryScalarValueSurvivesARoundTrip) {
  for (std::uint32_t cp = 0; cp <= 0x10FFFF; ++cp) {
    if (cp >= 0xD800 && cp <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(cp, text);
    const Utf8Step step = DecodeUtf8(text);
    ASSERT_EQ(step.status, Utf8Status::kOk);
    ASSERT_EQ(step.code_point, cp);
    ASSERT_EQ(step.bytes, text.size());
  }
}

// Case C69: one U+FFFD per maximal subpart.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::pair<std::string_view, std::size_t> cases[] = {
      {"\xf0\x9f\x98", 1}, {"\xff", 1},         {"\x80", 1},
      {"\xc0\xaf", 2},     {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}};
  for (const auto& [bytes, count] : cases) {
    EXPECT_EQ(CountReplacements(ReplaceInvalidUtf8(bytes)), count);
    EXPECT_EQ(FirstInvalidUtf8(bytes), 0u);
  }
  EXPECT_EQ(ReplaceInvalidUtf8("\xf0\x9f\x41"), std::string(kReplacement) + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("春a\xff"
                               "b"),
            "春a\xEF\xBF\xBD"
            "b");
}

TEST(Utf8, ErrorNamesOffsetAndByte) {
  const auto result = Utf8ToCodePoints("ab\xE6\x98");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "not valid UTF-8: byte 0xE6 at offset 2");
  EXPECT_EQ(Utf8ToCodePoints("春🐉").value(), (std::vector<std::uint32_t>{0x6625, 0x1F409}));
}

TEST(Utf8, SplitCharacters) {
  EXPECT_EQ(SplitCharacters("a春🐉"), (std::vector<std::string_view>{"a", "春", "🐉"}));
  EXPECT_TRUE(SplitCharacters("").empty());
}

}  // namespace
}  // namespace kvasir::base
