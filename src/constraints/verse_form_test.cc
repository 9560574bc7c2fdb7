#include "constraints/verse_form.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "constraints/test_vocabulary.h"

namespace kvasir::constraints {
namespace {

TEST(VerseForm, NamesAndShapes) {
  const VerseShape expected[] = {{"wujue", 4, 5}, {"qijue", 4, 7}, {"wulv", 8, 5}, {"qilv", 8, 7}};
  for (const VerseShape& shape : expected) {
    const VerseShape found = ShapeOf(ParseVerseForm(shape.name).value());
    EXPECT_EQ(found.name, shape.name);
    EXPECT_EQ(found.lines, shape.lines);
    EXPECT_EQ(found.chars, shape.chars);
  }
  for (std::string_view name : {"", "Qijue", "sonnet", "qijue "}) {
    const auto result = ParseVerseForm(name);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    EXPECT_NE(result.error().message.find("wujue, qijue, wulv or qilv"), std::string::npos);
  }
}

TEST(VerseForm, HeadsMustBeOneForEachLine) {
  const tokenizer::Vocabulary vocabulary = TestVocabulary("春眠不觉，。");
  const auto refusal = [&](VerseForm form, std::string_view heads) {
    const auto result = MakeVerseMatcher(vocabulary, form, heads);
    EXPECT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    return result.error().message;
  };
  EXPECT_EQ(refusal(VerseForm::kQijue, "春眠不"), "3 heads were given, but a qijue has 4 lines");
  EXPECT_EQ(refusal(VerseForm::kQilv, "春眠不觉"), "4 heads were given, but a qilv has 8 lines");
  EXPECT_NE(refusal(VerseForm::kWujue, "春眠，觉").find("head 3 is '，'"), std::string::npos);
  EXPECT_NE(refusal(VerseForm::kWujue, "春眠🐉觉").find("head 3 is '🐉'"), std::string::npos);
  EXPECT_NE(refusal(VerseForm::kWujue, "").find("no heads were given"), std::string::npos);
  EXPECT_TRUE(MakeVerseMatcher(vocabulary, VerseForm::kWulv, "春眠不觉春眠不觉").has_value());
  EXPECT_TRUE(MakeVerseMatcher(vocabulary, VerseForm::kWujue).has_value());
}

// Byte tokens could write them, but nothing the model learned follows.
TEST(VerseForm, HeadsMustBeInTheVocabulary) {
  const tokenizer::Vocabulary vocabulary =
      TestVocabulary("春眠不觉，。", {{"月", tokenizer::TokenType::kControl}});
  ASSERT_TRUE(vocabulary.ByteToken(0xE9).has_value());
  for (const auto& [heads, why] : {std::pair("春眠龘觉", "head 3 is '龘' (U+9F98)"),
                                   {"龘龘龘龘", "head 1 is '龘' (U+9F98)"},
                                   {"春眠不𠀀", "head 4 is '𠀀' (U+20000)"},
                                   {"春月不觉", "head 2 is '月' (U+6708)"}}) {
    const auto result = MakeVerseMatcher(vocabulary, VerseForm::kQijue, heads);
    ASSERT_FALSE(result.has_value()) << heads;
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    EXPECT_EQ(result.error().message,
              std::string(why) + ": it must be a character of the model's vocabulary");
  }
}

}  // namespace
}  // namespace kvasir::constraints
