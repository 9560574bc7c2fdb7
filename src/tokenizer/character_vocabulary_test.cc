#include "tokenizer/character_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::tokenizer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(CharacterVocabulary, HasTheLayoutOfTheReferenceModel) {
  const VocabularySpec spec = BuildCharacterVocabulary("春风。\n春𭘵a").value();
  ASSERT_EQ(spec.pieces.size(), 259u + 6u);
  EXPECT_EQ(spec.pieces[0], "<unk>");
  EXPECT_EQ(spec.pieces[1], "<s>");
  EXPECT_EQ(spec.pieces[2], "</s>");
  EXPECT_EQ(spec.pieces[3], "<0x00>");
  EXPECT_EQ(spec.pieces[13], "<0x0A>");
  EXPECT_EQ(spec.pieces[258], "<0xFF>");
  const std::vector<std::string> characters(spec.pieces.begin() + 259, spec.pieces.end());
  EXPECT_THAT(characters, ElementsAre("\n", "a", "。", "春", "风", "𭘵"));
  EXPECT_THAT(spec.scores, Each(0.0F));
  EXPECT_EQ(spec.scores.size(), spec.pieces.size());
  EXPECT_EQ(spec.types[0], TokenType::kUnknown);
  EXPECT_EQ(spec.types[1], TokenType::kControl);
  EXPECT_EQ(spec.types[2], TokenType::kControl);
  for (TokenId id = 3; id < 259; ++id) EXPECT_EQ(spec.types[id], TokenType::kByte);
  for (TokenId id = 259; id < 265; ++id) EXPECT_EQ(spec.types[id], TokenType::kNormal);
  EXPECT_EQ(spec.unk, 0u);
  EXPECT_EQ(spec.bos, 1u);
  EXPECT_EQ(spec.eos, 2u);
  EXPECT_EQ(spec.pad, std::nullopt);
  EXPECT_FALSE(spec.add_bos);
  EXPECT_FALSE(spec.add_eos);
  EXPECT_FALSE(spec.add_space_prefix);
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(vocabulary.ByteToken(static_cast<std::uint8_t>(byte)), 3u + byte);
  }
}

TEST(CharacterVocabulary, SpaceIsStoredAsOtherReadersLookItUp) {
  const VocabularySpec spec = BuildCharacterVocabulary("b a▁").value();
  const std::vector<std::string> characters(spec.pieces.begin() + 259, spec.pieces.end());
  EXPECT_THAT(characters, ElementsAre("▁", "a", "b"));
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  EXPECT_EQ(vocabulary.FindPiece(" "), 259u);
  EXPECT_EQ(vocabulary.FindPiece("▁"), std::nullopt);
}

TEST(CharacterVocabulary, TakesTheCharactersOfAllTexts) {
  const std::string_view texts[] = {"ab", "", "bc"};
  const VocabularySpec spec = BuildCharacterVocabulary(texts).value();
  const std::vector<std::string> characters(spec.pieces.begin() + 259, spec.pieces.end());
  EXPECT_THAT(characters, ElementsAre("a", "b", "c"));
}

TEST(CharacterVocabulary, RefusesEmptyAndBadText) {
  EXPECT_EQ(BuildCharacterVocabulary("").error().message,
            "no vocabulary can be made of an empty text");
  const std::string_view empty[] = {"", ""};
  EXPECT_FALSE(BuildCharacterVocabulary(empty).has_value());
  EXPECT_FALSE(BuildCharacterVocabulary(std::span<const std::string_view>()).has_value());
  EXPECT_EQ(BuildCharacterVocabulary("春\xff").error().message,
            "the text is not valid UTF-8: byte 0xFF at offset 3");
  EXPECT_EQ(BuildCharacterVocabulary("春\xff").error().code, base::ErrorCode::kBadData);
  const std::string_view texts[] = {"a", "b\xE6\x98"};
  EXPECT_EQ(BuildCharacterVocabulary(texts).error().message,
            "text 2 of 2 is not valid UTF-8: byte 0xE6 at offset 1");
}

}  // namespace
}  // namespace kvasir::tokenizer
