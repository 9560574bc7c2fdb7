#include "engine/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_test_models.h"

namespace kvasir::engine {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<tokenizer::CharacterTokenizer> WithStart(bool add_bos) {
  auto spec = tokenizer::BuildCharacterVocabulary("\n春风");
  EXPECT_TRUE(spec);
  spec.value().add_bos = add_bos;
  auto vocabulary = tokenizer::Vocabulary::Make(std::move(spec.value()));
  EXPECT_TRUE(vocabulary);
  auto made = tokenizer::CharacterTokenizer::Make(std::move(vocabulary.value()));
  EXPECT_TRUE(made);
  return std::move(made.value());
}

TEST(EndTokensTest, AreTheVocabularysEachOnce) {
  auto spec = tokenizer::BuildCharacterVocabulary("\n春风").value();
  const base::TokenId end = *spec.eos;
  EXPECT_THAT(EndTokens(tokenizer::Vocabulary::Make(spec).value()), ElementsAre(end));
  spec.eot = end;
  EXPECT_THAT(EndTokens(tokenizer::Vocabulary::Make(spec).value()), ElementsAre(end));
  spec.eot = *spec.bos;
  EXPECT_THAT(EndTokens(tokenizer::Vocabulary::Make(spec).value()), ElementsAre(end, *spec.bos));
  spec.eos.reset();
  spec.eot.reset();
  EXPECT_TRUE(EndTokens(tokenizer::Vocabulary::Make(spec).value()).empty());
}

TEST(PromptTest, TextAsItIs) {
  const auto tokenizer = WithStart(false);
  const auto& vocabulary = tokenizer->vocabulary();
  EXPECT_THAT(PromptTokens(*tokenizer, "春风").value(),
              ElementsAre(*vocabulary.FindPiece("春"), *vocabulary.FindPiece("风")));
}

TEST(PromptTest, EmptyTextStartsFromANewline) {
  const auto tokenizer = WithStart(false);
  EXPECT_THAT(PromptTokens(*tokenizer, "").value(),
              ElementsAre(*tokenizer->vocabulary().FindPiece("\n")));
}

TEST(PromptTest, StartTokenWhereTheVocabularyAsksForIt) {
  const auto tokenizer = WithStart(true);
  const auto& vocabulary = tokenizer->vocabulary();
  EXPECT_THAT(PromptTokens(*tokenizer, "").value(), ElementsAre(*vocabulary.bos()));
  EXPECT_THAT(PromptTokens(*tokenizer, "春").value(),
              ElementsAre(*vocabulary.bos(), *vocabulary.FindPiece("春")));
}

TEST(PromptTest, NotUtf8) {
  const auto tokens = PromptTokens(*WithStart(false), "春\xFF");
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().code, base::ErrorCode::kBadData);
}

}  // namespace
}  // namespace kvasir::engine
