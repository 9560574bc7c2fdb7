#include "tokenizer/text_faults.h"

#include <gtest/gtest.h>

namespace kvasir::tokenizer {
namespace {

TEST(TextFaults, NamesTheByte) {
  EXPECT_TRUE(CheckUtf8("").has_value());
  EXPECT_TRUE(CheckUtf8("春\x01").has_value());
  const auto checked = CheckUtf8("春\xE6\x98");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, base::ErrorCode::kBadData);
  EXPECT_EQ(checked.error().message, "not valid UTF-8: byte 0xE6 at offset 3");
}

TEST(TextFaults, NamesTheCharacter) {
  const auto message = [](std::string_view text, std::size_t at) {
    const base::Error error = MissingCharacter(text, at);
    EXPECT_EQ(error.code, base::ErrorCode::kUsage);
    return error.message;
  };
  const std::string rest = " is not in the vocabulary, which has no byte tokens for it";
  EXPECT_EQ(message("ab春", 2), "the character '春' (U+6625) at offset 2" + rest);
  EXPECT_EQ(message("\n", 0), "the character U+000A at offset 0" + rest);
  EXPECT_EQ(message("\u2028", 0), "the character U+2028 at offset 0" + rest);
}

}  // namespace
}  // namespace kvasir::tokenizer
