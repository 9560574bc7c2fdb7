#include "constraints/constraint_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "constraints/test_vocabulary.h"

namespace kvasir::constraints {
namespace {

using ::testing::HasSubstr;
using tokenizer::TokenType;

TEST(ConstraintCompiler, EveryKind) {
  const tokenizer::Vocabulary vocabulary = TestVocabulary("ab1{}\"");
  ConstraintCompiler compiler(vocabulary);
  const ConstraintSpec specs[] = {{ConstraintKind::kRegex, {"ab?"}},
                                  {ConstraintKind::kGrammar, {"root ::= \"a\" \"b\"?"}},
                                  {ConstraintKind::kChoices, {"a", "ab"}}};
  for (const ConstraintSpec& spec : specs) {
    const auto matcher = compiler.Make(spec);
    ASSERT_TRUE(matcher) << matcher.error().message;
    EXPECT_FALSE(matcher.value()->MayEnd());
    EXPECT_TRUE(matcher.value()->Accept(*vocabulary.FindPiece("a")));
    EXPECT_TRUE(matcher.value()->MayEnd());
    EXPECT_TRUE(matcher.value()->Accept(*vocabulary.FindPiece("b")));
    EXPECT_TRUE(matcher.value()->IsComplete());
  }
  const auto json = compiler.Make({ConstraintKind::kJsonSchema, {"{\"const\":1}"}});
  ASSERT_TRUE(json);
  EXPECT_TRUE(json.value()->Accept(*vocabulary.FindPiece("1")));
  EXPECT_TRUE(json.value()->MayEnd());
}

TEST(ConstraintCompiler, RefusalsPassThrough) {
  ConstraintCompiler compiler(TestVocabulary("ab"));
  for (const ConstraintKind kind : {ConstraintKind::kRegex, ConstraintKind::kGrammar,
                                    ConstraintKind::kJsonSchema, ConstraintKind::kChoices}) {
    EXPECT_FALSE(compiler.Make({kind, {"(\xff"}}));
  }
}

TEST(ConstraintCompiler, VocabularyThatCannotWriteIt) {
  ConstraintCompiler compiler(BareVocabulary({{"a", TokenType::kNormal}}));
  EXPECT_THAT(compiler.Make({ConstraintKind::kRegex, {"b"}}).error().message,
              HasSubstr("cannot write the beginning"));
  EXPECT_TRUE(compiler.Make({ConstraintKind::kRegex, {"a|b"}}));
}

// Matchers of one text share what was compiled, also after many others.
TEST(ConstraintCompiler, KeepsByContent) {
  const tokenizer::Vocabulary vocabulary = TestVocabulary("ab");
  ConstraintCompiler compiler(vocabulary);
  for (int i = 0; i < 100; ++i) {
    const auto matcher =
        compiler.Make({ConstraintKind::kRegex, {"a{" + std::to_string(i % 50 + 1) + "}"}});
    ASSERT_TRUE(matcher);
    EXPECT_EQ(matcher.value()->Accept(*vocabulary.FindPiece("a")), true);
    EXPECT_EQ(matcher.value()->IsComplete(), i % 50 == 0);
  }
}

TEST(Judge, TellsWhereATextFails) {
  Recognizer recognizer(CompileGrammar({ConstraintKind::kRegex, {"ab[cd]"}}).value());
  const auto judge = [&](const char* text) { return Judge(recognizer, text).value(); };
  EXPECT_TRUE(judge("abd").complete);
  EXPECT_EQ(judge("abd").position, 3u);
  EXPECT_TRUE(judge("ab").accepted);
  EXPECT_FALSE(judge("ab").complete);
  EXPECT_FALSE(judge("abx").accepted);
  EXPECT_EQ(judge("abx").position, 2u);
  EXPECT_EQ(judge("abcd").position, 3u);
}

}  // namespace
}  // namespace kvasir::constraints
