#include "tokenizer/user_tokens.h"

#include <gtest/gtest.h>

#include "tokenizer/tokenizer_test_vocabularies.h"

namespace kvasir::tokenizer {
namespace {

TEST(UserTokens, TheFirstAndThereTheLongest) {
  VocabularySpec spec;
  AddToken(spec, "<normal>", TokenType::kNormal);
  AddToken(spec, "<control>", TokenType::kControl);
  AddToken(spec, "<a", TokenType::kUserDefined);
  AddToken(spec, "<ab>", TokenType::kUserDefined);
  AddToken(spec, "ab", TokenType::kUserDefined);
  AddToken(spec, "<a", TokenType::kUserDefined);
  AddToken(spec, "春", TokenType::kUserDefined);
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  const UserTokens tokens(vocabulary);
  const auto expect = [&](std::string_view text, std::size_t from, std::size_t begin,
                          std::size_t bytes, TokenId id) {
    const UserTokens::Match match = tokens.FindFirst(text, from);
    EXPECT_EQ(match.begin, begin) << text;
    EXPECT_EQ(match.bytes, bytes) << text;
    if (bytes > 0) {
      EXPECT_EQ(match.id, id) << text;
    }
  };
  expect("x<ab>", 0, 1, 4, 3);
  expect("x<ab", 0, 1, 2, 2);  // Of equal texts the lower id.
  expect("x<ab", 2, 2, 2, 4);
  expect("x<ab", 3, 4, 0, 0);
  expect("风春", 0, 3, 3, 6);
  expect("<normal><control>", 0, 17, 0, 0);
  expect("", 0, 0, 0, 0);
}

TEST(UserTokens, NoneAtAll) {
  const Vocabulary vocabulary = Vocabulary::Make(SentencePieceSpec({{"a", 0}})).value();
  EXPECT_EQ(UserTokens(vocabulary).FindFirst("aaa", 1).begin, 3u);
}

}  // namespace
}  // namespace kvasir::tokenizer
