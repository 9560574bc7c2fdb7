#include "formats/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kvasir::formats {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const std::string& model, const std::string& rest = "") {
  return R"({"version":"1.0","model":{"type":"BPE","vocab":{"b":1,"a":0,"ab":2})" + model + "}" +
         rest + "}";
}

TokenizerJson Parsed(const std::string& text) { return ParseTokenizerJson(text, "t").value(); }

void Refused(const std::string& text, const std::string& why) {
  const auto read = ParseTokenizerJson(text, "t.json");
  ASSERT_FALSE(read.has_value()) << text;
  EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(read.error().message, HasSubstr("t.json: "));
  EXPECT_THAT(read.error().message, HasSubstr(why));
}

std::string ByteLevel(const char* flags) {
  return std::string(R"({"type":"ByteLevel","add_prefix_space":false)") + flags + "}";
}

TEST(TokenizerJson, TokensComeById) {
  const TokenizerJson file = Parsed(FileOf(R"(,"merges":["a b",["a","b"]],"unk_token":"b")"));
  ASSERT_EQ(file.tokens.size(), 3u);
  EXPECT_EQ(file.tokens[0].text, "a");
  EXPECT_EQ(file.tokens[2].id, 2u);
  ASSERT_EQ(file.merges.size(), 2u);
  EXPECT_EQ(file.merges[0], file.merges[1]);
  EXPECT_EQ(file.merges[0].second, "b");
  EXPECT_EQ(file.unknown, "b");
  EXPECT_FALSE(file.byte_fallback || file.ignore_merges || file.word_regex);
  EXPECT_EQ(file.normalizer, TextNormalizer::kNone);
}

TEST(TokenizerJson, AnOldFileHasNoType) {
  EXPECT_EQ(Parsed(R"({"model":{"vocab":{"a":0}}})").tokens.size(), 1u);
}

TEST(TokenizerJson, StepsAreRead) {
  const auto cutter = [](const std::string& step) {
    return Parsed(FileOf("", ",\"pre_tokenizer\":" + step)).word_regex;
  };
  EXPECT_EQ(cutter("null"), std::nullopt);
  EXPECT_EQ(cutter(ByteLevel("")), kByteLevelRegex);
  EXPECT_EQ(cutter(ByteLevel(R"(,"use_regex":true)")), kByteLevelRegex);
  const std::string split = R"({"type":"Split","pattern":{"Regex":"\\s"},"behavior":"Isolated"})";
  const auto sequence = [](const std::string& steps) {
    return R"({"type":"Sequence","pretokenizers":[)" + steps + "]}";
  };
  EXPECT_EQ(cutter(sequence(split + "," + ByteLevel(R"(,"use_regex":false)"))), "\\s");
  const auto normalizer = [](const std::string& step) {
    return Parsed(FileOf("", ",\"normalizer\":" + step)).normalizer;
  };
  const std::string replace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  EXPECT_EQ(normalizer(R"({"type":"NFC"})"), TextNormalizer::kNfc);
  EXPECT_EQ(normalizer(replace), TextNormalizer::kSpaces);
  EXPECT_EQ(normalizer(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)" +
                       replace + "]}"),
            TextNormalizer::kLedSpaces);
  EXPECT_EQ(normalizer(R"({"type":"Sequence","normalizers":[]})"), TextNormalizer::kNone);
}

TEST(TokenizerJson, ATemplateNamesTokens) {
  const std::string added =
      R"(,"added_tokens":[{"id":7,"content":"<s>","special":true},{"id":3,"content":"x"}])";
  const auto framed = [&](const std::string& single) {
    return Parsed(FileOf("", added + R"(,"post_processor":{"type":"Sequence","processors":[)" +
                                 R"({"type":"ByteLevel"},{"type":"TemplateProcessing","single":[)" +
                                 single + "]}]}"));
  };
  const std::string text = R"({"Sequence":{"id":"A","type_id":0}})";
  const std::string start = R"({"SpecialToken":{"id":"<s>","type_id":0}})";
  const TokenizerJson file = framed(start + "," + text);
  EXPECT_EQ(file.first, 7u);
  EXPECT_EQ(file.last, std::nullopt);
  EXPECT_EQ(framed(text + "," + start).last, 7u);
  ASSERT_EQ(file.added.size(), 2u);
  EXPECT_EQ(file.added[0].text, "x");
  EXPECT_TRUE(file.added[1].special && !file.added[0].special);
}

TEST(TokenizerJson, RefusesWhatItDoesNotKnow) {
  Refused("[]", "not an object");
  Refused("{}", "model");
  Refused(R"({"model":{"vocab":{}}})", "vocab");
  Refused(R"({"version":"1.1","model":{"vocab":{"a":0}}})", "version is '1.1'");
  Refused(R"({"model":{"type":"WordPiece","vocab":{"a":0}}})", "type is 'WordPiece'");
  Refused(R"({"model":{"vocab":{"a":0,"b":0}}})", "one id, 0");
  Refused(R"({"model":{"vocab":{"a":2147483648}}})", "allowed are 0 to 2147483647");
  Refused(FileOf(",\"merges\":[\"ab\"]"), "merge 0");
  Refused(FileOf(",\"merges\":[[\"a\"]]"), "merge 0");
  Refused(FileOf(",\"merges\":[[\"a\",\"b\",\"c\"]]"), "merge 0");
  Refused(FileOf(",\"cache_capacity\":3"), "'cache_capacity'");
  Refused(FileOf("", R"(,"added_tokens":[{"id":1,"content":"z"}])"), "which is 'b'");
  Refused(FileOf("", R"(,"added_tokens":[{"id":5,"content":"a"}])"), "the ids 0 and 5");
  Refused(FileOf("", R"(,"added_tokens":[{"id":5,"content":"z"},{"id":5,"content":"y"}])"),
          "twice");
  Refused(FileOf("", R"(,"added_tokens":[{"id":5,"content":"z","rstrip":true}])"), "rstrip");
  Refused(FileOf("", R"(,"added_tokens":[{"id":5}])"), "no content");
  Refused(FileOf("", R"(,"pre_tokenizer":{"type":"ByteLevel"})"), "add_prefix_space");
  Refused(FileOf("", R"(,"pre_tokenizer":{"type":"Metaspace"})"), "'Metaspace'");
  Refused(FileOf("", R"(,"pre_tokenizer":3)"), "it is 3");
  Refused(FileOf("", R"(,"normalizer":{"type":"Lowercase"})"), "'Lowercase'");
  Refused(FileOf("", R"(,"decoder":{"type":"CTC"})"), "'CTC'");
  Refused(FileOf("", R"(,"post_processor":{"type":"TemplateProcessing","single":[]})"), "the text");
}

TEST(TokenizerJson, EveryPrefixIsAnError) {
  const std::string text = FileOf(R"(,"merges":["a b"])", R"(,"pre_tokenizer":)" + ByteLevel(""));
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(ParseTokenizerJson(text.substr(0, bytes), "t").has_value()) << bytes;
  }
}

}  // namespace
}  // namespace kvasir::formats
