#include "constraints/drawable_tokens.h"

#include <gtest/gtest.h>

#include "constraints/test_vocabulary.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

TEST(DefaultMask, CharacterModelsDrawCharactersOnly) {
  const Vocabulary vocabulary = TestVocabulary("春风，。\n", {{"雪", TokenType::kUnused},
                                                              {"<x>", TokenType::kControl},
                                                              {"〈词〉", TokenType::kUserDefined}});
  ASSERT_TRUE(IsCharacterLevel(vocabulary));
  const TokenMask mask = DefaultMask(vocabulary);
  ASSERT_EQ(mask.size(), vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    EXPECT_EQ(mask.Test(id), type == TokenType::kNormal || type == TokenType::kUserDefined) << id;
  }
  EXPECT_EQ(mask.Count(), 6u);
  const TokenId eos = *vocabulary.eos();
  EXPECT_FALSE(mask.Test(eos));
  TokenMask with_end = mask;
  with_end.Allow(eos);
  EXPECT_EQ(DefaultMask(vocabulary, std::vector<TokenId>{eos}), with_end);
}

TEST(DefaultMask, OtherModelsKeepTheirTrainedTokens) {
  const Vocabulary vocabulary = TestVocabulary(
      "春",
      {{"春风", TokenType::kNormal}, {"雪", TokenType::kUnused}, {"<x>", TokenType::kControl}});
  ASSERT_FALSE(IsCharacterLevel(vocabulary));
  const TokenMask mask = DefaultMask(vocabulary);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    EXPECT_EQ(mask.Test(id), type != TokenType::kUnknown && type != TokenType::kUnused) << id;
  }
}

TEST(DefaultMask, WhatTheTrainingTextNeverHeldIsNotDrawn) {
  Vocabulary vocabulary = TestVocabulary("春风，。\n");
  TokenMask expected = DefaultMask(vocabulary);
  tokenizer::VocabularySpec spec = vocabulary.spec();
  spec.untrained = {*vocabulary.FindPiece("风"), *vocabulary.FindPiece("，")};
  for (TokenId id : spec.untrained) expected.Ban(id);
  vocabulary = Vocabulary::Make(spec).value();
  EXPECT_EQ(DefaultMask(vocabulary), expected);
  // Named as an end token, one is drawn all the same; and the tokenizer knows it as before.
  EXPECT_TRUE(DefaultMask(vocabulary, spec.untrained).Test(spec.untrained[0]));
  EXPECT_EQ(vocabulary.Bytes(spec.untrained[0]), "风");
}

TEST(BannedTokens, BanEveryTokenThatContainsTheText) {
  const Vocabulary vocabulary = TestVocabulary(
      "春风。\n",
      {{"春。", TokenType::kNormal}, {"春", TokenType::kUserDefined}, {"春", TokenType::kControl}});
  const TokenId spring = *vocabulary.FindPiece("春");
  const auto n = static_cast<TokenId>(vocabulary.size());
  // And the bytes E6 98 A5, which could spell it.
  TokenId byte = 0;  // Of 00.
  while (vocabulary.type(byte) != TokenType::kByte) ++byte;
  EXPECT_EQ(BannedTokens(vocabulary, std::vector<std::string>{"春", "春"}).value(),
            (std::vector<TokenId>{byte + 0x98, byte + 0xA5, byte + 0xE6, spring, n - 3, n - 2}));
  EXPECT_EQ(BannedTokens(vocabulary, std::vector<std::string>{"\n"}).value(),
            (std::vector<TokenId>{byte + 0x0A, *vocabulary.FindPiece("\n")}));
  EXPECT_TRUE(BannedTokens(vocabulary, {}).value().empty());
}

TEST(BannedTokens, RefuseWhatIsNotOneToken) {
  const Vocabulary vocabulary = TestVocabulary("春风，。");
  const auto refusal = [&](std::string text) {
    const auto result = BannedTokens(vocabulary, std::vector<std::string>{"春", std::move(text)});
    EXPECT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    return result.error().message;
  };
  EXPECT_EQ(refusal("龘"), "'龘' (U+9F98) cannot be banned: it is not one token of this model");
  EXPECT_EQ(refusal("春风"), "'春风' cannot be banned: it is not one token of this model");
  EXPECT_EQ(refusal("a\nb").find('\n'), std::string::npos);
  EXPECT_EQ(refusal(""), "an empty text cannot be banned");
  EXPECT_NE(refusal("<s>").find("'<s>' cannot be banned"), std::string::npos);
  EXPECT_NE(refusal("\xFF").find("cannot be banned"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::constraints
