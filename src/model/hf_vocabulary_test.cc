#include "model/hf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/hf_writer.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tokenizer::TokenId;
using tokenizer::TokenType;
using tokenizer::VocabularySpec;

base::Result<VocabularySpec> Read(const std::string& text, std::uint64_t rows) {
  const auto file = formats::ParseTokenizerJson(text, "t.json");
  EXPECT_TRUE(file.has_value()) << file.error().message;
  return VocabularyOfJson(file.value(), rows);
}

std::vector<TokenId> Encode(const VocabularySpec& spec, const std::string& text) {
  auto vocabulary = tokenizer::Vocabulary::Make(spec);
  EXPECT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  const auto made = tokenizer::MakeTokenizer(std::move(vocabulary.value()));
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return made.value()->Encode(text).value();
}

// Spaces as ▁, with these tokens and merges.
std::string Spaces(const std::string& tokens, const std::string& merges,
                   const std::string& rest = "") {
  return R"({"model":{"byte_fallback":true,"unk_token":"<unk>","vocab":{"<unk>":0,)" + tokens +
         R"(},"merges":[)" + merges +
         R"(]},"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
         R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})" +
         rest + "}";
}

constexpr const char* kTokens = R"("<0xC3>":1,"<0xA9>":2,"▁":3,"a":4,"b":5,"▁a":6,"ab":7,"▁ab":8)";
constexpr const char* kMerges = R"("a b","▁ a","▁ ab","▁a b")";

TEST(HfVocabulary, MergesBecomeScores) {
  const VocabularySpec spec = Read(Spaces(kTokens, kMerges), 10).value();
  EXPECT_EQ(spec.kind, tokenizer::VocabularyKind::kSentencePiece);
  EXPECT_THAT(spec.scores, ElementsAre(0, 0, 0, 0, 0, 0, -2, -1, -3, 0));
  EXPECT_EQ(spec.types[0], TokenType::kUnknown);
  EXPECT_EQ(spec.types[1], TokenType::kByte);
  EXPECT_EQ(spec.types[4], TokenType::kNormal);
  EXPECT_EQ(spec.types[9], TokenType::kUnused);
  EXPECT_EQ(spec.pieces[9], "[PAD9]");
  EXPECT_EQ(spec.unk, 0u);
  EXPECT_TRUE(spec.add_space_prefix);
  EXPECT_FALSE(spec.add_bos || spec.add_eos);
  EXPECT_THAT(Encode(spec, "ab a"), ElementsAre(8, 6));
  EXPECT_THAT(Encode(spec, "é"), ElementsAre(3, 1, 2));
}

TEST(HfVocabulary, ScoresThatCouldCutOtherwiseAreRefused) {
  const auto refused = [](const std::string& text, const std::string& why) {
    const auto read = Read(text, 12);
    ASSERT_FALSE(read.has_value()) << why;
    EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(read.error().message, HasSubstr("t.json: "));
    EXPECT_THAT(read.error().message, HasSubstr(why));
  };
  refused(Spaces(kTokens, R"("a b","▁ a","▁a b")"), "no merge makes '▁ab' of '▁' and 'ab'");
  refused(Spaces(kTokens, R"("▁ ab","a b","▁a b","▁ a")"), "make '▁ab' do not stand together");
  refused(Spaces(kTokens + std::string(R"(,"za":9)"), kMerges), "makes 'za' of 'z' and 'a'");
  refused(Spaces(kTokens, R"("a q")"), "merge 0 is of 'a' and 'q'");
  refused(Spaces(kTokens + std::string(R"(,"x y":9)"), kMerges), "holds a blank");
  refused(Spaces(kTokens + std::string(",\"") + std::string(257, 'z') + "\":9", kMerges),
          "257 bytes");
  refused(Spaces(kTokens + std::string(R"(,"c":12)"), kMerges), "vocab_size is 12");
  refused(Spaces(kTokens, kMerges, R"(,"added_tokens":[{"id":9,"content":"<x>"}])"), "led by");
  refused(R"({"model":{"byte_fallback":true,"vocab":{"▁":0}}})", "token '▁' holds '▁'");
  refused(R"({"model":{"byte_fallback":true,"vocab":{"a":0}},"normalizer":{"type":"NFC"}})",
          "normalizer");
  refused(R"({"model":{"vocab":{"a":0}}})", "byte_fallback false");
}

TEST(HfVocabulary, SpacesMayStandForThemselves) {
  const VocabularySpec spec =
      Read(R"({"model":{"byte_fallback":true,"vocab":{"a":0," ":1," a":2,"<0x20>":3},)"
           R"("merges":[[" ","a"]]}})",
           4)
          .value();
  EXPECT_THAT(spec.pieces, ElementsAre("a", "▁", "▁a", "<0x20>"));
  EXPECT_THAT(Encode(spec, "a a "), ElementsAre(0, 2, 1));
  // Without a token for it a space is a byte, and nothing may be made of it before.
  const VocabularySpec none = tokenizer::BuildCharacterVocabulary("春风").value();
  const std::string text = HfTokenizerText(none).value();
  EXPECT_THAT(text, HasSubstr("\"normalizer\": null"));
  const VocabularySpec again = Read(text, none.pieces.size()).value();
  EXPECT_EQ(again.pieces, none.pieces);
  EXPECT_THAT(Encode(again, "春 "), ElementsAre(259, 3 + 0x20));
}

// Letters and a merge, cut by this regular expression.
std::string Bytes(const std::string& regex, const std::string& settings,
                  const std::string& rest = "") {
  std::string split;
  formats::AppendJsonString(regex, split);
  return R"({"model":{"vocab":{"a":0,"b":1,"Ġ":2,"ab":3,"e":4},"merges":[["a","b"]])" + settings +
         R"(},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
         R"({"Regex":)" +
         split +
         R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel",)"
         R"("add_prefix_space":false,"use_regex":false}]})" +
         rest + "}";
}

const std::string kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kQwen2 = [] {
  std::string regex = kLlama3;
  return regex.erase(regex.find("{1,3}"), 5);
}();
constexpr const char* kNfc = R"(,"normalizer":{"type":"NFC"})";

TEST(HfVocabulary, ByteLevelKindsAreKnownByTheirRegex) {
  const auto pre = [](const std::string& text) { return Read(text, 5).value().pre; };
  EXPECT_EQ(pre(Bytes(kLlama3, R"(,"ignore_merges":true)")), tokenizer::PreTokenizer::kLlama3);
  EXPECT_EQ(pre(Bytes(kQwen2, "", kNfc)), tokenizer::PreTokenizer::kQwen2);
  EXPECT_EQ(pre(Bytes(std::string(formats::kByteLevelRegex), "")), tokenizer::PreTokenizer::kGpt2);
  EXPECT_THAT(Encode(Read(Bytes(kQwen2, "", kNfc), 5).value(), "ab ba"), ElementsAre(3, 2, 1, 0));
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_THAT(Read(text, 5).error().message, HasSubstr(why));
  };
  refused(Bytes("\\w+", ""), "the regular expression is '\\\\w+'");
  refused(Bytes(kLlama3, ""), "ignore_merges is false");
  refused(Bytes(kQwen2, R"(,"ignore_merges":true)", kNfc), "ignore_merges is true");
  refused(Bytes(kQwen2, ""), "must be NFC");
  refused(Bytes(kLlama3, R"(,"ignore_merges":true)", kNfc), "must be null");
  refused(Bytes(kQwen2, R"(,"byte_fallback":true)", kNfc), "byte_fallback is true");
  refused(
      Bytes(kQwen2, "",
            std::string(kNfc) + R"(,"added_tokens":[{"id":4,"content":"e","normalized":true}])"),
      "normalized false");
}

TEST(HfVocabulary, AddedTokensAndTheTemplate) {
  const VocabularySpec spec =
      Read(Bytes(kLlama3, R"(,"ignore_merges":true)",
                 R"(,"added_tokens":[{"id":5,"content":"<s>","special":true},)"
                 R"({"id":7,"content":"<x>","special":false}],"post_processor":{"type":)"
                 R"("TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
                 R"({"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<s>"}}]})"),
           8)
          .value();
  EXPECT_EQ(spec.types[5], TokenType::kControl);
  EXPECT_EQ(spec.types[6], TokenType::kUnused);
  EXPECT_EQ(spec.types[7], TokenType::kUserDefined);
  EXPECT_TRUE(spec.add_bos && spec.add_eos);
  EXPECT_EQ(spec.bos, 5u);
  EXPECT_EQ(spec.eos, 5u);
  EXPECT_THAT(Encode(spec, "a<x>ab"), ElementsAre(0, 7, 3));
  // Written and read again it is the same.
  const VocabularySpec again = Read(HfTokenizerText(spec).value(), 8).value();
  EXPECT_EQ(again.pieces, spec.pieces);
  EXPECT_EQ(again.types, spec.types);
  EXPECT_EQ(again.merges, spec.merges);
  EXPECT_TRUE(again.add_bos && again.add_eos && again.bos == 5u && again.eos == 5u);
}

TEST(HfVocabulary, WhatIsWrittenIsReadBack) {
  const std::vector<VocabularySpec> specs = {
      tokenizer::BuildCharacterVocabulary("abc \"春\\\n").value(),
      Read(Spaces(kTokens, kMerges), 10).value(), Read(Bytes(kQwen2, "", kNfc), 6).value()};
  for (const VocabularySpec& spec : specs) {
    const auto text = HfTokenizerText(spec);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    const VocabularySpec again = Read(text.value(), spec.pieces.size()).value();
    EXPECT_EQ(again.kind, spec.kind);
    EXPECT_EQ(again.pieces, spec.pieces);
    EXPECT_EQ(again.types, spec.types);
    EXPECT_EQ(again.scores, spec.scores);
    EXPECT_EQ(again.merges, spec.merges);
    EXPECT_EQ(again.pre, spec.pre);
    EXPECT_EQ(again.unk, spec.unk);
    EXPECT_EQ(again.add_space_prefix, spec.add_space_prefix);
  }
}

TEST(HfVocabulary, WhatHasNoWordsIsNotWritten) {
  const auto refused = [](const VocabularySpec& spec, const std::string& why) {
    const auto text = HfTokenizerText(spec);
    ASSERT_FALSE(text.has_value()) << why;
    EXPECT_THAT(text.error().message, HasSubstr(why));
  };
  const VocabularySpec whole = Read(Spaces(kTokens, kMerges), 10).value();
  VocabularySpec spec = whole;
  spec.scores[6] = spec.scores[7];
  refused(spec, "joined at one score");
  spec = whole;
  spec.pieces[5] = "a";
  refused(spec, "both written 'a'");
  spec = whole;
  spec.types[4] = TokenType::kUserDefined;
  refused(spec, "user-defined");
  spec = whole;
  spec.unk = 4;
  refused(spec, "unknown");
  spec = whole;
  spec.types[5] = TokenType::kControl;
  refused(spec, "of which one is no token");
  spec = tokenizer::BuildCharacterVocabulary("春").value();
  spec.add_space_prefix = true;
  refused(spec, "no token holds one");
}

}  // namespace
}  // namespace kvasir::model
