#include "constraints/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "constraints/language_test_util.h"

namespace kvasir::constraints {
namespace {

using ::testing::HasSubstr;

void Check(const std::string& text, const std::vector<std::string>& good,
           const std::vector<std::string>& bad) {
  SCOPED_TRACE(text);
  auto grammar = CompileGbnf(text);
  ASSERT_TRUE(grammar) << grammar.error().message;
  Recognizer recognizer(std::move(grammar).value());
  for (const std::string& t : good) EXPECT_TRUE(Accepts(recognizer, t)) << t;
  for (const std::string& t : bad) EXPECT_FALSE(Accepts(recognizer, t)) << t;
}

std::string ErrorOf(const std::string& text) {
  const auto grammar = CompileGbnf(text);
  EXPECT_FALSE(grammar) << text;
  return grammar ? "" : grammar.error().message;
}

constexpr const char* kJson = R"gbnf(
# JSON, as its users write it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";

TEST(Gbnf, Json) {
  Check(kJson, {"{}", "{\"a\":1}", R"({"a": [1, -2.5e3, {"b": null}], "春": "\u00e9\n"})", "{ }"},
        {"", "[]", "{\"a\"}", "{\"a\":1", "{\"a\":01}", "{\"a\":1}}", "{\"a\":\"\xff\"}"});
}

TEST(Gbnf, Recursion) {
  Check("root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", ")(", "(()"});
  Check("root ::= \"a\" root \"b\" | \"ab\"", {"ab", "aabb"}, {"aab", "abab", ""});
  Check("root ::= a\na ::= \"x\" b | \"x\"\nb ::= \"y\" a", {"x", "xyx"}, {"xy", "y"});
  // Ambiguous: two calls in a row of a rule that holds the empty text.
  Check("root ::= s s\ns ::= \"a\" s s | \"\"", {"", "a", "aaaaaaaaaaaa"}, {"b", "ab"});
  Check("root ::= p | q\np ::= \"(\" p \")\" | \"x\"\nq ::= \"(\" q \"]\" | \"x\"",
        {"((x))", "((x]]", "x"}, {"((x)]", "((x"});
}

TEST(Gbnf, LongTextsAndDeepNesting) {
  auto right = CompileGbnf("root ::= \"a\" root | \"b\"");
  Recognizer recognizer(std::move(right).value());
  EXPECT_TRUE(Accepts(recognizer, std::string(100000, 'a') + "b"));
  EXPECT_LE(recognizer.state_count(), 4u);  // A call at the end of a rule needs no stack.
  auto nested = CompileGbnf("root ::= \"(\" root \")\" | \"x\"");
  Recognizer deep(std::move(nested).value());
  EXPECT_TRUE(Accepts(deep, std::string(5000, '(') + "x" + std::string(5000, ')')));
  EXPECT_FALSE(Accepts(deep, std::string(5000, '(') + "x" + std::string(4999, ')')));
}

TEST(Gbnf, LiteralsAndClasses) {
  Check(R"(root ::= "\x41\u4e2d\U0001F600\t\"\\" [\x61-c\]-] . [^x])",
        {"A中😀\t\"\\b\nq", "A中😀\t\"\\-春😀"},
        {"A中😀\t\"\\b\nx", "A中😀\t\"\\d\nq", "A中😀\t\"\\b\n\xff"});
  Check("root ::= [a-] \"\"", {"a", "-"}, {"", "b"});
}

// Case C91.
TEST(Gbnf, Repeats) {
  const std::string l(1000, 'a');
  Check("root ::= \"a\"{0}", {""}, {"a"});
  Check("root ::= \"a\"{0,0}", {""}, {"a"});
  Check("root ::= \"a\"{3}", {"aaa"}, {"aa", "aaaa"});
  Check("root ::= \"a\"{,3} \"b\"", {"b", "aaab"}, {"aaaab"});
  Check("root ::= \"a\"{2,}", {"aa", l}, {"a"});
  Check("root ::= ((\"a\"{0,100}){0,100}){0,100}", {"", l}, {"b"});
  Check("root ::= (\"a\"*)*", {"", "aa"}, {"b"});
  Check("root ::= x{2,3}\nx ::= \"a\"?", {"", "aaa"}, {"aaaa"});
  Check("root ::= \"a\"{0,1000000}", {"", l}, {"b"});
  EXPECT_THAT(ErrorOf("root ::= \"a\"{5,0}"), HasSubstr("{5,0} has its counts reversed"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"{-1}"), HasSubstr("a number is needed"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"{0,1000001}"), HasSubstr("above 1000000"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"{2000000000,2147483647}"), HasSubstr("above 1000000"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"{99999999999999999999}"), HasSubstr("above 1000000"));
  EXPECT_THAT(ErrorOf("root ::= ((\"a\" | \"bb\"){1,1000} \"c\"){1,1000}"), HasSubstr("100000"));
}

// Case C89.
TEST(Gbnf, LeftRecursionIsRefused) {
  for (const char* text :
       {"root ::= root \"a\" | \"b\"", "root ::= e\ne ::= i | e (\"+\"|\"-\") e\ni ::= [0-9]+",
        "root ::= x? root \"a\" | \"b\"\nx ::= \"z\"",
        "root ::= b\na ::= b \"x\" | \"1\"\nb ::= a \"y\"",
        "root ::= x root \"a\" | \"b\"\nx ::= \"\" | \"z\"", "root ::= (root \"a\")* \"b\""}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is left-recursive")) << text;
  }
  EXPECT_THAT(ErrorOf("root ::= b\nb ::= b \"y\" | \"z\""), HasSubstr("'b'"));
}

// Case C93.
TEST(Gbnf, MissingRules) {
  EXPECT_EQ(ErrorOf("root ::= foo"), "grammar, at byte 9: rule 'foo' is used but not defined");
  EXPECT_THAT(ErrorOf("a ::= \"x\""), HasSubstr("no rule 'root'"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("no rule 'root'"));
  EXPECT_THAT(ErrorOf("# only a comment"), HasSubstr("no rule 'root'"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"\nroot ::= \"b\""), HasSubstr("'root' is defined twice"));
  Check("root ::=", {""}, {"a"});
  EXPECT_THAT(ErrorOf("root ::= \"a\" root"), HasSubstr("no text satisfies"));
  Check("root ::= \"a\" | b\nb ::= \"x\" b", {"a"}, {"x"});  // b never ends.
}

// Case C95.
TEST(Gbnf, Layout) {
  Check("root ::= \"a\"\n  | \"b\" # or\r\n\t|\"c\"  ", {"a", "b", "c"}, {"", "ab"});
  Check("root ::= (\n \"a\"\n |\n \"b\"\n) \"c\"\nx ::= \"d\"\n", {"ac", "bc"}, {"a"});
  Check("root::=a-b_1\na-b_1::=\"q\"", {"q"}, {"a"});
}

TEST(Gbnf, RefusesBadSyntax) {
  EXPECT_THAT(ErrorOf("root ::= \"a"), HasSubstr("at byte 9: this '\"' lacks its end"));
  EXPECT_THAT(ErrorOf("root ::= [a"), HasSubstr("lacks its ']'"));
  EXPECT_THAT(ErrorOf("root ::= []"), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("root ::= [b-a]"), HasSubstr("later"));
  EXPECT_THAT(ErrorOf("root ::= (\"a\""), HasSubstr("lacks its ')'"));
  EXPECT_THAT(ErrorOf("root ::= \"a\")"), HasSubstr("')' has no '('"));
  EXPECT_THAT(ErrorOf("root ::= * \"a\""), HasSubstr("needed here"));
  EXPECT_THAT(ErrorOf("root = \"a\""), HasSubstr("a rule is needed"));
  EXPECT_THAT(ErrorOf("root ::= \"\\q\""), HasSubstr("escape is not known"));
  EXPECT_THAT(ErrorOf("root ::= \"\\ud800\""), HasSubstr("U+D800"));
  EXPECT_THAT(ErrorOf("root ::= <[5]>"), HasSubstr("tokens"));
  EXPECT_THAT(ErrorOf("root ::= \"\xff\""), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf("root ::= " + std::string(60000, '(')), HasSubstr("more than 250 deep"));
}

// Whatever a random walk reaches can be completed.
TEST(Gbnf, WhatIsAliveCanEnd) {
  const std::uint64_t seed = 7;
  std::mt19937_64 random(seed);
  auto grammar = CompileGbnf(kJson);
  Recognizer recognizer(std::move(grammar).value());
  for (int trial = 0; trial < 10; ++trial) {
    const std::string text = RandomText(recognizer, random, 20).substr(0, 12);
    EXPECT_TRUE(CanEnd(recognizer, recognizer.Step(recognizer.start(), text))) << text;
  }
}

// A text that can be read in many ways needs memory in proportion to its length.
TEST(Gbnf, AmbiguousRulesReadLongTexts) {
  Recognizer recognizer(CompileGbnf(R"(root ::= "a" root "b" | "a" root | "b" root | "")").value(),
                        std::size_t{64} << 20);
  const std::string as(5000, 'a'), bs(5000, 'b');
  EXPECT_TRUE(Accepts(recognizer, as + bs));
  EXPECT_TRUE(recognizer.Status());
  EXPECT_FALSE(AcceptsPrefix(recognizer, as + "c"));
}

}  // namespace
}  // namespace kvasir::constraints
