#include "constraints/acrostic.h"

#include <gtest/gtest.h>

#include "constraints/test_vocabulary.h"

namespace kvasir::constraints {
namespace {

// Walks with one character for every choice.
std::string Written(const tokenizer::Vocabulary& vocabulary, std::string_view heads,
                    std::size_t chars) {
  const auto matcher = MakeAcrosticMatcher(vocabulary, heads, chars).value();
  const base::TokenId flower = *vocabulary.FindPiece("花");
  std::string text;
  while (!matcher->IsComplete()) {
    const std::vector<base::TokenId> forced = matcher->ForcedTokens();
    const base::TokenId token = forced.empty() ? flower : forced[0];
    EXPECT_TRUE(matcher->Accept(token));
    text += vocabulary.Bytes(token);
  }
  return text;
}

TEST(Acrostic, TheProgramSetsHeadsAndPunctuationInTurn) {
  const tokenizer::Vocabulary vocabulary = TestVocabulary("春眠不觉花，。");
  EXPECT_EQ(Written(vocabulary, "春眠不觉", 5), "春花花花花，眠花花花花。不花花花花，觉花花花花。");
  EXPECT_EQ(Written(vocabulary, "春眠", 7), "春花花花花花花，眠花花花花花花。");
  // An odd number of heads still ends with a full stop.
  EXPECT_EQ(Written(vocabulary, "春", 2), "春花。");
  EXPECT_EQ(Written(vocabulary, "春眠不", 2), "春花，眠花。不花。");
  // Heads the model has never seen.
  EXPECT_EQ(Written(vocabulary, "龘𠮷", 2), "龘花，𠮷花。");
}

TEST(Acrostic, RefusesBadHeadsAndLengths) {
  const tokenizer::Vocabulary vocabulary = TestVocabulary("春花，。");
  for (std::string_view heads : {"", "，", "春。", "🐉", "春 花", "春\n", "ab", "\xFF"}) {
    const auto result = MakeAcrosticMatcher(vocabulary, heads, 5);
    ASSERT_FALSE(result.has_value()) << heads;
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
  }
  for (std::size_t chars : {std::size_t{0}, kMaxLineChars + 1, ~std::size_t{0}}) {
    const auto result = MakeAcrosticMatcher(vocabulary, "春", chars);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find("must be 1 to 64"), std::string::npos);
  }
  EXPECT_TRUE(MakeAcrosticMatcher(vocabulary, "春", kMaxLineChars).has_value());
}

}  // namespace
}  // namespace kvasir::constraints
