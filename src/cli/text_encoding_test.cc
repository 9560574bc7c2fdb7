#include "cli/text_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "base/philox.h"
#include "base/utf8.h"

namespace kvasir::cli {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;

constexpr std::string_view kText = "春风a\n𠮷€é";
constexpr std::string_view kGb =
    "\xB4\xBA\xB7\xE7"
    "a\n"
    "\x95\x34\xB2\x35\xA2\xE3\xA8\xA6"sv;
constexpr std::string_view kLittle =
    "\x25\x66\xCE\x98\x61\x00\x0A\x00\x42\xD8\xB7\xDF\xAC\x20\xE9\x00"sv;
constexpr std::string_view kBig =
    "\x66\x25\x98\xCE\x00\x61\x00\x0A\xD8\x42\xDF\xB7\x20\xAC\x00\xE9"sv;

std::string Join(std::string_view a, std::string_view b) { return std::string(a) + std::string(b); }

base::Error ErrorOf(std::string_view bytes, TextEncoding encoding) {
  const auto text = ToUtf8(bytes, encoding);
  EXPECT_FALSE(text.has_value()) << text.value();
  return text.has_value() ? base::Error{} : text.error();
}

TEST(TextEncodingTest, ReadsEachEncoding) {
  EXPECT_EQ(ToUtf8(kText, TextEncoding::kAuto).value(), kText);
  EXPECT_EQ(ToUtf8(kText, TextEncoding::kUtf8).value(), kText);
  EXPECT_EQ(ToUtf8(kGb, TextEncoding::kGb18030).value(), kText);
  EXPECT_EQ(ToUtf8(kLittle, TextEncoding::kUtf16Le).value(), kText);
  EXPECT_EQ(ToUtf8(kLittle, TextEncoding::kUtf16).value(), kText);
  EXPECT_EQ(ToUtf8(kBig, TextEncoding::kUtf16Be).value(), kText);
  for (const std::string& name : TextEncodingNames()) {
    EXPECT_EQ(ToUtf8("", FindTextEncoding(name)).value(), "") << name;
  }
}

TEST(TextEncodingTest, AByteOrderMarkDecidesAndIsNoText) {
  const std::string little = Join("\xFF\xFE", kLittle), big = Join("\xFE\xFF", kBig);
  for (const TextEncoding encoding : {TextEncoding::kAuto, TextEncoding::kUtf16}) {
    EXPECT_EQ(ToUtf8(little, encoding).value(), kText);
    EXPECT_EQ(ToUtf8(big, encoding).value(), kText);
  }
  EXPECT_EQ(ToUtf8(little, TextEncoding::kUtf16Le).value(), kText);
  EXPECT_EQ(ToUtf8(big, TextEncoding::kUtf16Be).value(), kText);
  EXPECT_EQ(ToUtf8(Join("\xEF\xBB\xBF", kText), TextEncoding::kAuto).value(), kText);
  // One only; a second is a character.
  EXPECT_EQ(ToUtf8("\xEF\xBB\xBF\xEF\xBB\xBF", TextEncoding::kUtf8).value(), "\xEF\xBB\xBF");
  EXPECT_EQ(ToUtf8("\xFF\xFE\xFF\xFE", TextEncoding::kAuto).value(), "\xEF\xBB\xBF");
}

TEST(TextEncodingTest, LongTextsAreWhole) {
  std::string gb, utf8;
  for (int i = 0; i < 20000; ++i) {
    gb += "\xB4\xBA\x81\x30\x81\x30x";
    utf8 += "春\xC2\x80x";
  }
  EXPECT_EQ(ToUtf8(gb, TextEncoding::kGb18030).value(), utf8);
}

TEST(TextEncodingTest, FaultsAreToldWithTheirOffset) {
  EXPECT_THAT(ErrorOf("ab\xFFz", TextEncoding::kAuto).message,
              HasSubstr("not UTF-8: byte 0xFF at offset 2"));
  EXPECT_THAT(ErrorOf("\xB4\xBA\xFF", TextEncoding::kGb18030).message,
              HasSubstr("not GB18030: byte 0xFF at offset 2"));
  EXPECT_THAT(ErrorOf("a\xB4", TextEncoding::kGb18030).message,
              HasSubstr("not GB18030: byte 0xB4 at offset 1"));
  // A low surrogate alone; half of a pair at the end; half of a unit.
  EXPECT_THAT(ErrorOf("a\0\x00\xDC"sv, TextEncoding::kUtf16Le).message,
              HasSubstr("not UTF-16 (little-endian): byte 0x00 at offset 2"));
  EXPECT_THAT(ErrorOf("\xFE\xFF\0a\xD8\x42"sv, TextEncoding::kAuto).message,
              HasSubstr("not UTF-16 (big-endian): byte 0xD8 at offset 4"));
  EXPECT_THAT(ErrorOf("a\0b"sv, TextEncoding::kUtf16Le).message, HasSubstr("at offset 2"));
  EXPECT_EQ(ErrorOf("\xFF", TextEncoding::kAuto).code, base::ErrorCode::kBadData);
}

TEST(TextEncodingTest, ATextBeyondTheFaultDoesNotHelp) {
  // Half of it one encoding, half another.
  EXPECT_THAT(ErrorOf(Join("春风", kGb), TextEncoding::kAuto).message, HasSubstr("at offset 6"));
  const std::string mixed = Join(kGb, "\xE6\x98\xA5\xE9");
  EXPECT_THAT(ErrorOf(mixed + "\xA3", TextEncoding::kGb18030).message, HasSubstr("not GB18030"));
}

TEST(TextEncodingTest, WhatIsNoTextIsRefused) {
  EXPECT_THAT(ErrorOf("ab\0c"sv, TextEncoding::kAuto).message, HasSubstr("U+0000 at offset 2"));
  EXPECT_THAT(ErrorOf("ab\0c"sv, TextEncoding::kGb18030).message, HasSubstr("U+0000 at offset 2"));
  EXPECT_THAT(ErrorOf("a\0\0\0b\0"sv, TextEncoding::kUtf16Le).message,
              HasSubstr("U+0000 at offset 2"));
  // 0x6100 0x0062: a 0 in the middle is none of the text's.
  EXPECT_EQ(ToUtf8("\0\x61\x62\0"sv, TextEncoding::kUtf16Le).value(), "愀b");
  EXPECT_EQ(ErrorOf("ab\0cde"sv, TextEncoding::kAuto).hint, "");
}

TEST(TextEncodingTest, HintsAtTheEncodingThatFits) {
  EXPECT_THAT(ErrorOf(kGb, TextEncoding::kAuto).hint, HasSubstr("--encoding gb18030"));
  EXPECT_THAT(ErrorOf("a\0b\0"sv, TextEncoding::kAuto).hint, HasSubstr("--encoding utf-16le"));
  EXPECT_THAT(ErrorOf("\0a\0b"sv, TextEncoding::kUtf8).hint, HasSubstr("--encoding utf-16be"));
  EXPECT_EQ(ErrorOf("春\xFF\xFF", TextEncoding::kAuto).hint, "");
}

TEST(TextEncodingTest, Utf8IsNotTakenForGb18030) {
  const std::string_view seven = "春风花月江山水", eight = "春风花月江山水人";
  EXPECT_THAT(ErrorOf(eight, TextEncoding::kGb18030).message, HasSubstr("is UTF-8, not GB18030"));
  // Seven may be chance; they are read as asked, if they can be.
  EXPECT_THAT(ErrorOf(seven, TextEncoding::kGb18030).message, HasSubstr("offset"));
  EXPECT_EQ(ToUtf8("only ascii, of any length", TextEncoding::kGb18030).value(),
            "only ascii, of any length");
}

// Whatever the bytes: a text that is whole, or an error; and it is the same as the encodings say.
TEST(TextEncodingTest, AnyBytesAreTextOrAreRefused) {
  int texts = 0;
  for (std::uint32_t trial = 0; trial < 2000; ++trial) {
    std::string bytes;
    const auto random = base::Philox4x32(1, {trial, 0, 0, 0});
    for (std::uint32_t i = 0; i < random[0] % 12; ++i) {
      const std::uint32_t r = base::Philox4x32(1, {trial, i, 1, 0})[0];
      bytes += static_cast<char>(random[1] % 2 == 0 ? r : (r >> 8) % 4 == 0 ? r : r % 0x60 + 0x20);
    }
    for (const std::string& name : TextEncodingNames()) {
      const auto text = ToUtf8(bytes, FindTextEncoding(name));
      if (!text) continue;
      ++texts;
      EXPECT_FALSE(base::FirstInvalidUtf8(text.value()).has_value()) << trial << " " << name;
      EXPECT_EQ(text.value().find('\0'), std::string::npos) << trial << " " << name;
    }
  }
  EXPECT_GT(texts, 500);
}

TEST(TextEncodingTest, NamesTheFile) {
  const std::string path = testing::TempDir() + "/text_encoding_" + std::to_string(getpid());
  base::Env& env = base::Env::Default();
  const auto error = [&](std::string_view content, TextEncoding encoding) {
    EXPECT_TRUE(base::WriteFileAtomic(env, path, content).has_value());
    return ReadTextFile(env, path, encoding).error().message;
  };
  EXPECT_EQ(error("", TextEncoding::kAuto), "'" + path + "' is empty");
  EXPECT_EQ(error("\xFF\xFE", TextEncoding::kAuto), "'" + path + "' is empty");
  EXPECT_EQ(error("a\xFF", TextEncoding::kAuto),
            "'" + path + "' is not UTF-8: byte 0xFF at offset 1");
  EXPECT_TRUE(base::WriteFileAtomic(env, path, kGb).has_value());
  EXPECT_EQ(ReadTextFile(env, path, TextEncoding::kGb18030).value(), kText);
  std::filesystem::remove(path);
  EXPECT_EQ(ReadTextFile(env, path, TextEncoding::kAuto).error().code, base::ErrorCode::kIo);
}

}  // namespace
}  // namespace kvasir::cli
