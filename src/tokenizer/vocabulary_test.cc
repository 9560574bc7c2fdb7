#include "tokenizer/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using ::testing::HasSubstr;

// <unk> <s> </s> <0x41> <0xE6> 春 ▁a pad-like, one of each type.
VocabularySpec SmallSpec() {
  VocabularySpec spec;
  spec.pieces = {"<unk>", "<s>", "</s>", "<0x41>", "<0xE6>", "春", "▁a▁", "<|user|>", "[unused]"};
  spec.types = {TokenType::kUnknown, TokenType::kControl,     TokenType::kControl,
                TokenType::kByte,    TokenType::kByte,        TokenType::kNormal,
                TokenType::kNormal,  TokenType::kUserDefined, TokenType::kUnused};
  spec.scores.assign(spec.pieces.size(), 0.5F);
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  return spec;
}

TEST(Vocabulary, BytesOfEveryType) {
  const Vocabulary vocabulary = Vocabulary::Make(SmallSpec()).value();
  const std::vector<std::string_view> expected = {"",   "",    "",         "A", "\xE6",
                                                  "春", " a ", "<|user|>", ""};
  ASSERT_EQ(vocabulary.size(), expected.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) EXPECT_EQ(vocabulary.Bytes(id), expected[id]);
  EXPECT_EQ(vocabulary.piece(6), "▁a▁");
  EXPECT_EQ(vocabulary.type(8), TokenType::kUnused);
  EXPECT_EQ(vocabulary.score(8), 0.5F);
  EXPECT_EQ(vocabulary.bos(), 1u);
  EXPECT_EQ(vocabulary.eos(), 2u);
  EXPECT_EQ(vocabulary.unk(), 0u);
  EXPECT_EQ(vocabulary.pad(), std::nullopt);
  EXPECT_EQ(vocabulary.ByteToken(0xE6), 4u);
  EXPECT_EQ(vocabulary.ByteToken(0x42), std::nullopt);
}

// Case C121: what a user types never names a control or byte token. Case C115: of two tokens with
// the same text the lower id is found, both stay.
TEST(Vocabulary, FindsTextOnly) {
  VocabularySpec spec = SmallSpec();
  spec.pieces.push_back("春");
  spec.scores.push_back(0);
  spec.types.push_back(TokenType::kNormal);
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  EXPECT_EQ(vocabulary.FindPiece("春"), 5u);
  EXPECT_EQ(vocabulary.Bytes(9), "春");
  EXPECT_EQ(vocabulary.FindPiece(" a "), 6u);
  EXPECT_EQ(vocabulary.FindPiece("<|user|>"), 7u);
  for (const char* other :
       {"", "<s>", "</s>", "<unk>", "<0x41>", "A", "\xE6", "[unused]", "▁a▁", " a", "风"}) {
    EXPECT_EQ(vocabulary.FindPiece(other), std::nullopt) << other;
  }
}

// Case C115: a piece longer than any fixed buffer.
TEST(Vocabulary, LongPiecesAreWhole) {
  VocabularySpec spec = SmallSpec();
  const std::string piece(100000, 'x');
  spec.pieces[5] = piece;
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  EXPECT_EQ(vocabulary.Bytes(5), piece);
  EXPECT_EQ(vocabulary.FindPiece(piece), 5u);
}

TEST(Vocabulary, ACopyStandsAlone) {
  auto original = std::make_unique<Vocabulary>(Vocabulary::Make(SmallSpec()).value());
  const Vocabulary copy = *original;
  original.reset();
  EXPECT_EQ(copy.Bytes(5), "春");
  EXPECT_EQ(copy.FindPiece("春"), 5u);
}

// Case C137 and its kind: everything that can be wrong in a file is refused, naming the value.
TEST(Vocabulary, RefusesBadSpecs) {
  struct Bad {
    std::function<void(VocabularySpec&)> spoil;
    const char* message;
  };
  const Bad cases[] = {
      {[](VocabularySpec& s) { s = {}; }, "a vocabulary of 0 tokens"},
      {[](VocabularySpec& s) { s.scores.pop_back(); }, "9 pieces but 8 scores and 9 types"},
      {[](VocabularySpec& s) { s.types.push_back(TokenType::kNormal); }, "9 scores and 10 types"},
      {[](VocabularySpec& s) { s.bos = 9; }, "start (bos) token has id 9 in a vocabulary of 9"},
      {[](VocabularySpec& s) { s.eos = 4294967295u; }, "end (eos) token has id 4294967295"},
      {[](VocabularySpec& s) { s.unk = 2147483648u; }, "unknown (unk) token has id 2147483648"},
      {[](VocabularySpec& s) { s.pad = 10; }, "padding (pad) token has id 10"},
      {[](VocabularySpec& s) { s.eot = 9; }, "end of turn (eot) token has id 9"},
      {[](VocabularySpec& s) { s.untrained = {3, 9}; }, "untrained token 9 in a vocabulary of 9"},
      {[](VocabularySpec& s) { s.add_bos = true, s.bos.reset(); }, "add_bos is set"},
      {[](VocabularySpec& s) { s.add_eos = true, s.eos.reset(); }, "add_eos is set"},
      {[](VocabularySpec& s) { s.types[5] = static_cast<TokenType>(0); }, "token 5 has type 0"},
      {[](VocabularySpec& s) { s.types[5] = static_cast<TokenType>(7); }, "token 5 has type 7"},
      {[](VocabularySpec& s) { s.types[5] = static_cast<TokenType>(-1); }, "token 5 has type -1"},
      {[](VocabularySpec& s) { s.scores[3] = std::numeric_limits<float>::quiet_NaN(); },
       "token 3 has score nan"},
      {[](VocabularySpec& s) { s.scores[3] = -std::numeric_limits<float>::infinity(); },
       "token 3 has score -inf"},
      {[](VocabularySpec& s) { s.pieces[5] = "a\xE6\x98"; },
       "token 5 is not valid UTF-8: byte 0xE6 at offset 1"},
      {[](VocabularySpec& s) { s.pieces[1] = "\xff"; }, "token 1 is not valid UTF-8"},
      {[](VocabularySpec& s) { s.pieces[5].clear(); }, "token 5 is a piece of text but empty"},
      {[](VocabularySpec& s) { s.pieces[7].clear(); }, "token 7 is a piece of text but empty"},
      {[](VocabularySpec& s) { s.pieces[4] = "<0x41>"; }, "tokens 3 and 4 are both the byte"},
  };
  for (const Bad& bad : cases) {
    VocabularySpec spec = SmallSpec();
    bad.spoil(spec);
    const auto vocabulary = Vocabulary::Make(spec);
    ASSERT_FALSE(vocabulary.has_value()) << bad.message;
    EXPECT_EQ(vocabulary.error().code, ErrorCode::kBadData);
    EXPECT_THAT(vocabulary.error().message, HasSubstr(bad.message));
  }
  for (const char* piece : {"", "A", "<0x4>", "<0x041>", "<0xg1>", "<0x4a>", "<0X41>", "<0x41)",
                            "(0x41>", "<0x4\n>", "<0x+1>"}) {
    VocabularySpec spec = SmallSpec();
    spec.pieces[3] = piece;
    const auto vocabulary = Vocabulary::Make(spec);
    ASSERT_FALSE(vocabulary.has_value()) << piece;
    EXPECT_THAT(vocabulary.error().message, HasSubstr("token 3 is a byte token but"));
    EXPECT_EQ(vocabulary.error().message.find('\n'), std::string::npos);
  }
}

// Pieces of a byte-level vocabulary stand for bytes, whole characters or not.
TEST(Vocabulary, ByteLevelPieces) {
  VocabularySpec spec = SmallSpec();
  spec.kind = VocabularyKind::kByteLevel;
  spec.pieces[5] = "Ġthe";
  spec.pieces[6] = "æĺ";        // The first two bytes of 春.
  spec.pieces[7] = "Ġ";         // User-defined: as it stands.
  spec.pieces.push_back("春");  // Not of the alphabet: as it stands.
  spec.scores.push_back(0);
  spec.types.push_back(TokenType::kNormal);
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  EXPECT_EQ(vocabulary.Bytes(5), " the");
  EXPECT_EQ(vocabulary.Bytes(6), "\xE6\x98");
  EXPECT_EQ(vocabulary.Bytes(7), "Ġ");
  EXPECT_EQ(vocabulary.Bytes(9), "春");
  EXPECT_EQ(vocabulary.FindPiece(" the"), 5u);
  EXPECT_EQ(vocabulary.FindPiece("Ġ"), 7u);
}

TEST(Vocabulary, CharacterLevel) {
  VocabularySpec spec = SmallSpec();
  EXPECT_FALSE(IsCharacterLevel(spec));
  spec.pieces[6] = "▁";
  EXPECT_FALSE(IsCharacterLevel(spec));  // <|user|>
  spec.pieces[7] = "u";
  EXPECT_TRUE(IsCharacterLevel(spec));
  spec.kind = VocabularyKind::kByteLevel;
  EXPECT_FALSE(IsCharacterLevel(spec));
}

TEST(Vocabulary, EmptyControlPiecesAreAllowed) {
  VocabularySpec spec = SmallSpec();
  spec.pieces[1].clear();
  EXPECT_TRUE(Vocabulary::Make(spec).has_value());
}

TEST(Vocabulary, ChecksIdsFromOutside) {
  const Vocabulary vocabulary = Vocabulary::Make(SmallSpec()).value();
  EXPECT_TRUE(vocabulary.CheckIds({}).has_value());
  const TokenId good[] = {0, 8};
  EXPECT_TRUE(vocabulary.CheckIds(good).has_value());
  const TokenId bad[] = {0, 9};
  const auto checked = vocabulary.CheckIds(bad);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::kUsage);
  EXPECT_EQ(checked.error().message, "token id 9 at index 1 (allowed: 0 to 8)");
}

TEST(VocabularyDeathTest, AnUncheckedIdIsAProgrammersError) {
  const Vocabulary vocabulary = Vocabulary::Make(SmallSpec()).value();
  EXPECT_DEATH((void)vocabulary.Bytes(9), "check failed");
  EXPECT_DEATH((void)vocabulary.Bytes(4294967295u), "check failed");
  EXPECT_DEATH((void)vocabulary.type(9), "check failed");
}

}  // namespace
}  // namespace kvasir::tokenizer
