#include "tokenizer/character_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/philox.h"
#include "base/utf8.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/stream_decoder.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<CharacterTokenizer> For(std::string_view text) {
  return CharacterTokenizer::Make(Vocabulary::Make(BuildCharacterVocabulary(text).value()).value())
      .value();
}

// The characters alone, without unknown, control and byte tokens.
std::unique_ptr<CharacterTokenizer> WithoutBytes(std::vector<std::string> pieces) {
  VocabularySpec spec;
  spec.types.assign(pieces.size(), TokenType::kNormal);
  spec.scores.assign(pieces.size(), 0);
  spec.pieces = std::move(pieces);
  return CharacterTokenizer::Make(Vocabulary::Make(std::move(spec)).value()).value();
}

void ExpectRoundTrip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text);
  ASSERT_TRUE(ids.has_value()) << text;
  EXPECT_EQ(Decode(tokenizer.vocabulary(), ids.value()).value(), text);
}

TEST(CharacterTokenizer, OneTokenACharacter) {
  const auto tokenizer = For("春风。\n");  // \n 259, 。 260, 春 261, 风 262
  EXPECT_THAT(tokenizer->Encode("春风。\n春").value(), ElementsAre(261, 262, 260, 259, 261));
  EXPECT_TRUE(tokenizer->Encode("").value().empty());
}

// Case C121, both directions.
TEST(CharacterTokenizer, ByteFallback) {
  const auto tokenizer = For("잠 수a");
  const TokenId space = *tokenizer->vocabulary().FindPiece(" ");
  const TokenId jam = *tokenizer->vocabulary().FindPiece("잠");
  const TokenId su = *tokenizer->vocabulary().FindPiece("수");
  EXPECT_THAT(tokenizer->Encode("잠 깰 수").value(),
              ElementsAre(jam, space, 3 + 0xEA, 3 + 0xB9, 3 + 0xB0, space, su));
  ExpectRoundTrip(*tokenizer, "잠 깰 수");
  ExpectRoundTrip(*tokenizer, "수깰");
  ExpectRoundTrip(*tokenizer, "人工智能🐉");
  ExpectRoundTrip(*tokenizer, std::string("\0\x01\x7f", 3));
}

// Case C121: typed text that looks like a token is text.
TEST(CharacterTokenizer, TypedTokenNamesAreText) {
  for (const char* known : {"<0x41>s/unk", "春"}) {
    const auto tokenizer = For(known);
    for (const char* typed : {"<0x41>", "<s>", "</s>", "<unk>"}) {
      const auto ids = tokenizer->Encode(typed).value();
      EXPECT_EQ(ids.size(), std::string(typed).size());
      for (const TokenId id : ids) {
        EXPECT_NE(tokenizer->vocabulary().type(id), TokenType::kControl);
        EXPECT_NE(tokenizer->vocabulary().type(id), TokenType::kUnknown);
      }
      ExpectRoundTrip(*tokenizer, typed);
    }
  }
}

// U+2581 stands for a space in the file; in text it is a character of its own.
TEST(CharacterTokenizer, SpaceAndMetaSpaceStayApart) {
  const auto tokenizer = For("a ▁");
  EXPECT_EQ(tokenizer->Encode(" ").value().size(), 1u);
  EXPECT_THAT(tokenizer->Encode("▁").value(), ElementsAre(3 + 0xE2, 3 + 0x96, 3 + 0x81));
  ExpectRoundTrip(*tokenizer, " a ▁▁  a");
}

// Case C123.
TEST(CharacterTokenizer, UnknownCharacterWithByteTokens) {
  const auto tokenizer = For("abcabc");
  for (const char* prompt : {"abd", "ABC", " ", "é", "", "\n"}) ExpectRoundTrip(*tokenizer, prompt);
}

// Case C123.
TEST(CharacterTokenizer, UnknownCharacterWithoutByteTokens) {
  const auto tokenizer = WithoutBytes({"a", "b", "c"});
  const std::pair<const char*, const char*> cases[] = {
      {"abd", "the character 'd' (U+0064) at offset 2 is not in the vocabulary"},
      {"春", "the character '春' (U+6625) at offset 0"},
      {"a🐉", "the character '🐉' (U+1F409) at offset 1"},
      {"a\n", "the character U+000A at offset 1"},
      {"a\xC2\x85", "the character U+0085 at offset 1"},
      {"a b", "the character ' ' (U+0020) at offset 1"}};
  for (const auto& [prompt, message] : cases) {
    const auto ids = tokenizer->Encode(prompt);
    ASSERT_FALSE(ids.has_value()) << prompt;
    EXPECT_EQ(ids.error().code, ErrorCode::kUsage);
    EXPECT_THAT(ids.error().message, HasSubstr(message));
    EXPECT_EQ(ids.error().message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(tokenizer->Encode("cab").value(), ElementsAre(2, 0, 1));
}

TEST(CharacterTokenizer, AMissingByteTokenIsAnErrorToo) {
  VocabularySpec spec;
  spec.pieces = {"<0xC3>", "<0xA8>"};
  spec.types = {TokenType::kByte, TokenType::kByte};
  spec.scores = {0, 0};
  const auto tokenizer =
      CharacterTokenizer::Make(Vocabulary::Make(std::move(spec)).value()).value();
  EXPECT_THAT(tokenizer->Encode("è").value(), ElementsAre(0, 1));
  EXPECT_THAT(tokenizer->Encode("é").error().message, HasSubstr("'é' (U+00E9) at offset 0"));
}

TEST(CharacterTokenizer, RefusesTextThatIsNotUtf8) {
  const auto ids = For("ab")->Encode("ab\xE6\x98");
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kBadData);
  EXPECT_EQ(ids.error().message, "not valid UTF-8: byte 0xE6 at offset 2");
}

TEST(CharacterTokenizer, RefusesPiecesOfSeveralCharacters) {
  for (const TokenType type : {TokenType::kNormal, TokenType::kUserDefined}) {
    VocabularySpec spec = BuildCharacterVocabulary("ab").value();
    spec.pieces.push_back("春风a");
    spec.scores.push_back(0);
    spec.types.push_back(type);
    const auto tokenizer = CharacterTokenizer::Make(Vocabulary::Make(std::move(spec)).value());
    ASSERT_FALSE(tokenizer.has_value());
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadData);
    EXPECT_EQ(tokenizer.error().message,
              "the vocabulary is not character-level: token 261 holds 3 characters");
  }
}

TEST(CharacterTokenizer, OfTwoEqualTokensTheLowerIdIsUsed) {
  EXPECT_THAT(WithoutBytes({"b", "a", "b", "a"})->Encode("ab").value(), ElementsAre(1, 0));
}

// Random text over all of Unicode, half of it from the vocabulary, comes back byte for byte.
TEST(CharacterTokenizer, RandomTextRoundTrips) {
  constexpr std::uint64_t kSeed = 20240601;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto tokenizer = For("春风 \n明月<>0x41s/");
  const auto known = base::Utf8ToCodePoints("春风 \n明月<>0x41s/").value();
  for (std::uint32_t trial = 0; trial < 500; ++trial) {
    std::string text;
    for (std::uint32_t i = 0; i < trial % 40; ++i) {
      const auto random = base::Philox4x32(kSeed, {trial, i, 0, 0});
      std::uint32_t code_point = random[1] % 0x110000;
      if (random[0] % 2 == 0) code_point = known[random[1] % known.size()];
      if (code_point >= 0xD800 && code_point <= 0xDFFF) code_point = 0x2581;
      base::AppendUtf8(code_point, text);
    }
    ExpectRoundTrip(*tokenizer, text);
  }
}

}  // namespace
}  // namespace kvasir::tokenizer
