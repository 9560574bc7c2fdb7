#include "cli/train_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::cli {
namespace {

using ::testing::HasSubstr;
using tokenizer::VocabularyKind;

TEST(TrainVocabularyTest, MostlyHanIsMoreThanHalfOfTheLetters) {
  EXPECT_TRUE(IsMostlyHan("春风 a"));
  EXPECT_FALSE(IsMostlyHan("春风 to"));
  EXPECT_TRUE(IsMostlyHan("春，。 12345 …"));
  EXPECT_FALSE(IsMostlyHan("はるのかぜ春風"));
  EXPECT_FALSE(IsMostlyHan("123"));
  EXPECT_FALSE(IsMostlyHan(""));
}

TEST(TrainVocabularyTest, TheTextDecidesUnlessAsked) {
  const auto kind = [](const VocabularyChoice& choice, std::string_view text) {
    return MakeVocabulary(choice, text, "").value().kind;
  };
  EXPECT_EQ(kind({}, "春风"), VocabularyKind::kSentencePiece);
  EXPECT_EQ(kind({}, "it was"), VocabularyKind::kByteLevel);
  EXPECT_EQ(kind({.tokenizer = TokenizerChoice::kCharacter}, "it was"),
            VocabularyKind::kSentencePiece);
  EXPECT_EQ(kind({.tokenizer = TokenizerChoice::kBytePairs}, "春风"), VocabularyKind::kByteLevel);
  EXPECT_EQ(kind({.tokens = 300}, "春风"), VocabularyKind::kByteLevel);
}

TEST(TrainVocabularyTest, CharactersAreOfBothTextsAndPairsOfOne) {
  const auto characters = MakeVocabulary({}, "春风", "月").value();
  EXPECT_EQ(characters.pieces.size(), 3u + 256 + 3);
  const VocabularyChoice pairs = {.tokenizer = TokenizerChoice::kBytePairs};
  EXPECT_EQ(MakeVocabulary(pairs, "xy xy", "ab ab ab").value().merges,
            (std::vector<std::string>{"x y"}));
}

TEST(TrainVocabularyTest, TheNumberOfTokensIsOfBytePairs) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919) + " ";
  EXPECT_EQ(MakeVocabulary({}, text, "").value().pieces.size(), kDefaultBytePairVocabulary);
  EXPECT_EQ(MakeVocabulary({.tokens = 300}, text, "").value().pieces.size(), 300u);
  const auto refused =
      MakeVocabulary({.tokenizer = TokenizerChoice::kCharacter, .tokens = 300}, text, "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("--vocab 300"));
}

}  // namespace
}  // namespace kvasir::cli
