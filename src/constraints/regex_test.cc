#include "constraints/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "constraints/language_test_util.h"

namespace kvasir::constraints {
namespace {

using ::testing::HasSubstr;

struct Sample {
  std::string regex;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void CheckSamples(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.regex);
    auto grammar = CompileRegex(sample.regex);
    ASSERT_TRUE(grammar) << grammar.error().message;
    Recognizer recognizer(std::move(grammar).value());
    for (const std::string& text : sample.good) EXPECT_TRUE(Accepts(recognizer, text)) << text;
    for (const std::string& text : sample.bad) EXPECT_FALSE(Accepts(recognizer, text)) << text;
  }
}

std::string ErrorOf(const std::string& regex) {
  const auto grammar = CompileRegex(regex);
  EXPECT_FALSE(grammar) << regex;
  return grammar ? "" : grammar.error().message;
}

TEST(Regex, MatchesTheWholeText) {
  CheckSamples({{"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
                {"a|b", {"a", "b"}, {"", "ab"}},
                {"", {""}, {"a"}},
                {"a*b+c?", {"b", "aabbc", "bc"}, {"a", "ac", "cb"}},
                {"(ab|a)(bc)?", {"ab", "a", "abbc", "abc"}, {"b", "abb"}},
                {"a*?b", {"b", "aab"}, {"a"}},
                {"x{2}", {"xx"}, {"x", "xxx"}},
                {"x{2,}", {"xx", "xxxxx"}, {"x"}},
                {"x{0,2}y", {"y", "xy", "xxy"}, {"xxxy"}},
                {"x{0}", {""}, {"x"}},
                {"(?:ab)+", {"ab", "abab"}, {"", "aba"}},
                {"(?<year>\\d{4})", {"2024"}, {"24"}},
                {"a{,x}|{|}|]", {"a{,x}", "{", "}", "]"}, {"a"}}});
}

TEST(Regex, Classes) {
  CheckSamples({{"[a-c]+", {"abc"}, {"d", ""}},
                {"[^a-c]", {"d", "\n", "春"}, {"a", "", "\xff", "dd"}},
                {"[\\w-]+", {"a-b_9"}, {"é", " "}},
                {"[a\\-z]", {"a", "-", "z"}, {"b"}},
                {"[a-]", {"a", "-"}, {"b"}},
                {"[\\]\\\\]", {"]", "\\"}, {"a"}},
                {".", {"a", "春", "😀", "\r"}, {"\n", "", "\xe6\x98", "\xff"}},
                {"\\d\\D\\s\\S\\W", {"1a x!"}, {"aa x!"}},
                {"[春风]+", {"春风"}, {"花"}},
                {"\\p{Han}{2}，", {"春风，"}, {"春，", "ab，"}},
                {"\\p{Lu}\\P{L}", {"A1", "É!"}, {"a1", "AB"}},
                {"\\x41\\u4e2d\\u{1F600}\\ud83d\\ude00\\t", {"A中😀😀\t"}, {"A中"}},
                {"\\.\\*\\/\\-", {".*/-"}, {"a"}}});
}

// Case C99: anchors and alternation, as full-match constraints.
TEST(Regex, Anchors) {
  CheckSamples({{"^a|b$", {"a", "b"}, {"ab", ""}},
                {"^(a|b)$", {"a", "b"}, {"^a"}},
                {"(^a)|(b$)", {"a", "b"}, {"ab"}},
                {"|a", {"", "a"}, {"b"}},
                {"a|", {"", "a"}, {"b"}},
                {"()", {""}, {"a"}},
                {"(a|)", {"", "a"}, {"b"}},
                {"^$", {""}, {"a"}},
                {"$^", {""}, {"a"}},
                {"^^a$$", {"a"}, {"", "aa"}},
                {"(^|x)a($|y)", {"a", "xa", "ay", "xay"}, {"x"}},
                {"(^a|b)*", {"", "a", "ab", "bb"}, {"ba", "aa"}},
                {"(a|b$)+", {"a", "ab", "b"}, {"ba", "bb"}},
                {"x*^a", {"a"}, {"xa"}}});
  EXPECT_THAT(ErrorOf("a^b"), HasSubstr("no text matches"));
  EXPECT_THAT(ErrorOf("^.^"), HasSubstr("no text matches"));
  EXPECT_THAT(ErrorOf("[^\\s\\S]"), HasSubstr("no text matches"));
}

// Case C101: counted repeats neither blow up nor hang.
TEST(Regex, CountedRepeats) {
  CheckSamples({{"a{3}{3}", {std::string(9, 'a')}, {std::string(8, 'a'), std::string(10, 'a')}},
                {"(a{2,3}){2,3}", {"aaaa", std::string(9, 'a')}, {"aaa", std::string(10, 'a')}},
                {"(a{3}){0,2}", {"", "aaa", "aaaaaa"}, {"a", "aaaa"}},
                {"(a{2}){1,3}", {"aa", "aaaa"}, {"aaa", "a"}},
                {"((a?){30}){30}", {"", std::string(900, 'a')}, {std::string(901, 'a')}},
                {"(a{0,50}){0,50}", {"", std::string(2500, 'a')}, {std::string(2501, 'a')}},
                {"(a|b|ab)*c{1000}", {"abba" + std::string(1000, 'c')}, {"abcc"}},
                {"(x+x+)+y", {"xxxxy"}, {"xy", std::string(5000, 'x')}},
                {"[a-z]{0,10000}", {std::string(10000, 'q')}, {std::string(10001, 'q')}},
                {"a{1,100000}{1,100000}", {"a", std::string(20000, 'a')}, {"", "b"}},
                {"(a*)*", {"", "aaa"}, {"b"}},
                {"((a*)+|b?)*c", {"aabac"}, {"a"}},
                {"(.{0,100},){0,100}", {"", "abc,,def,"}, {"abc", "abc,d"}}});
}

TEST(Regex, RefusesByNameAndPlace) {
  EXPECT_EQ(ErrorOf("ab("), "regex, at byte 3: a '(' before this lacks its ')'");
  EXPECT_THAT(ErrorOf("a)"), HasSubstr("at byte 1: ')' has no '('"));
  EXPECT_THAT(ErrorOf("[a"), HasSubstr("lacks its ']'"));
  EXPECT_THAT(ErrorOf("a{5,0}"), HasSubstr("{5,0} has its counts reversed"));
  EXPECT_THAT(ErrorOf("*a"), HasSubstr("nothing to repeat"));
  EXPECT_THAT(ErrorOf("a*+"), HasSubstr("'+' after a repeat"));
  EXPECT_THAT(ErrorOf("a{1000001}"), HasSubstr("1000001 is above 1000000"));
  EXPECT_THAT(ErrorOf("a{99999999999999999999}"), HasSubstr("above 1000000"));
  EXPECT_THAT(ErrorOf("a{,3}"), HasSubstr("write {0,n}"));
  EXPECT_THAT(ErrorOf("(?=a)b"), HasSubstr("lookahead"));
  EXPECT_THAT(ErrorOf("(?<!a)b"), HasSubstr("lookbehind"));
  EXPECT_THAT(ErrorOf("(?i)a"), HasSubstr("flags"));
  EXPECT_THAT(ErrorOf("(?>a)"), HasSubstr("atomic"));
  EXPECT_THAT(ErrorOf("(a)\\1"), HasSubstr("backreferences"));
  EXPECT_THAT(ErrorOf("\\bword"), HasSubstr("word boundaries"));
  EXPECT_THAT(ErrorOf("\\q"), HasSubstr("escape \\q"));
  EXPECT_THAT(ErrorOf("\\p{Greek}"), HasSubstr("Greek"));
  EXPECT_THAT(ErrorOf("\\ud800"), HasSubstr("U+D800 is not a character"));
  EXPECT_THAT(ErrorOf("\\u{110000}"), HasSubstr("not a character"));
  EXPECT_THAT(ErrorOf("[z-a]"), HasSubstr("to a later one"));
  EXPECT_THAT(ErrorOf("[[:alpha:]]"), HasSubstr("[:alpha:]"));
  EXPECT_THAT(ErrorOf("[]a]"), HasSubstr("class […] is empty"));
  EXPECT_THAT(ErrorOf("a\\"), HasSubstr("backslash at the end"));
  EXPECT_THAT(ErrorOf("a\xff"), HasSubstr("at byte 1: 0xff is not UTF-8"));
  EXPECT_THAT(ErrorOf("(^a){2,3}"), HasSubstr("counted repeat"));
  EXPECT_THAT(ErrorOf(std::string(60000, '(')), HasSubstr("nested more than 250"));
  EXPECT_THAT(ErrorOf("((ab|c{1,1000}){1,1000}d)"), HasSubstr("multiply to more than 100000"));
  EXPECT_THAT(ErrorOf(std::string((1u << 20) + 1, 'a')), HasSubstr("the limit"));
}

TEST(Regex, LimitsWorkAtTheLimit) {
  EXPECT_TRUE(CompileRegex("a{1000000}"));
  EXPECT_TRUE(CompileRegex("(ab|c{1,1000}){1,100}"));
  EXPECT_TRUE(CompileRegex(std::string(250, '(') + "a" + std::string(250, ')')));
  EXPECT_TRUE(CompileRegex(std::string(1u << 20, 'a')));
}

TEST(Regex, SearchesAsJsonSchemaDoes) {
  const auto matches = [](const std::string& regex, const std::string& text) {
    Grammar grammar;
    grammar.start =
        RegexTerm(*grammar.pool, regex, RegexDialect::kEcma, RegexMatch::kSearch).value();
    Recognizer recognizer(std::move(grammar));
    return Accepts(recognizer, text);
  };
  for (const std::string regex : {"b", "^b", "b$", "^b$", "^a|b$", "", "\\S", "(^a|c)b", "a$|^$"}) {
    for (const std::string text : {"b", "abc", "bc", "ab", "axx", "xxb", "xax", "", " "}) {
      EXPECT_EQ(matches(regex, text), std::regex_search(text, std::regex(regex)))
          << regex << " in " << text;
    }
  }
  EXPECT_TRUE(matches("^\\s$", "\u3000"));
  EXPECT_FALSE(matches("^.$", "\r"));
  EXPECT_TRUE(matches("^[^]$", "\n"));
}

// A language as the plainest oracle has it: all its texts of at most kLongest characters.
constexpr std::size_t kLongest = 6;
using Texts = std::set<std::string>;

Texts Joined(const Texts& a, const Texts& b) {
  Texts all;
  for (const std::string& x : a) {
    for (const std::string& y : b) {
      if (x.size() + y.size() <= kLongest) all.insert(x + y);
    }
  }
  return all;
}

struct RandomRegex {
  std::string regex;
  Texts texts;
};

RandomRegex MakeRandomRegex(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 9 : 3)) {
    case 0:
      return {"a", {"a"}};
    case 1:
      return {"b", {"b"}};
    case 2:
      return {"[ab]", {"a", "b"}};
    case 3:
    case 4: {
      const auto a = MakeRandomRegex(random, depth - 1), b = MakeRandomRegex(random, depth - 1);
      return {a.regex + b.regex, Joined(a.texts, b.texts)};
    }
    case 5: {
      auto a = MakeRandomRegex(random, depth - 1);
      const auto b = MakeRandomRegex(random, depth - 1);
      a.texts.insert(b.texts.begin(), b.texts.end());
      return {"(" + a.regex + "|" + b.regex + ")", a.texts};
    }
    case 6: {
      auto a = MakeRandomRegex(random, depth - 1);
      a.texts.insert("");
      return {"(|" + a.regex + ")", a.texts};
    }
    default: {
      const auto a = MakeRandomRegex(random, depth - 1);
      const std::size_t min = random() % 3;
      const bool star = random() % 3 == 0;
      const std::size_t max = min + (star ? kLongest + 1 : random() % 3);
      Texts round = {""}, all;
      for (std::size_t i = 0; i <= max; ++i) {
        if (i >= min) all.insert(round.begin(), round.end());
        round = Joined(round, a.texts);
      }
      return {"(" + a.regex + "){" + std::to_string(min) + "," + (star ? "" : std::to_string(max)) +
                  "}",
              all};
    }
  }
}

// Counts inside each other do not multiply: positions that others cover are left out.
TEST(Regex, NestedCountsReadLongTexts) {
  for (const char* regex : {"(.{0,100},?){0,1000}", "(.{2,100},?){3,1000}",
                            "((a{0,40}b?){0,40},?){0,60}", "(a{1,100}b?){50,1000}"}) {
    SCOPED_TRACE(regex);
    Recognizer recognizer(CompileRegex(regex).value(), std::size_t{40} << 20);
    EXPECT_TRUE(Accepts(recognizer, std::string(2000, 'a')));
    EXPECT_TRUE(recognizer.Status());
  }
  Recognizer recognizer(CompileRegex("(.{0,10},?){0,20}").value());
  EXPECT_TRUE(Accepts(recognizer, std::string(200, 'a')));
  EXPECT_FALSE(Accepts(recognizer, std::string(201, 'a')));
  EXPECT_TRUE(Accepts(recognizer, std::string(19, ',') + std::string(10, 'a') + ","));
}

// What needs more than the limit is no answer, and said to be none.
TEST(Regex, LimitOfMemoryIsKept) {
  const std::size_t limit = 4u << 20;
  Recognizer recognizer(CompileRegex("((a{300}|a{301}|a{305}),?){1,300}").value(), limit);
  StateId state = recognizer.start();
  int read = 0;
  for (; read < 60'000 && state != kDeadState; ++read) state = recognizer.Step(state, 'a');
  ASSERT_FALSE(recognizer.Status());
  EXPECT_LT(read, 60'000);
  EXPECT_EQ(recognizer.Step(recognizer.start(), 'x'), kDeadState);
  EXPECT_THAT(recognizer.Status().error().message, HasSubstr("4 MiB, the limit"));
}

// On all texts of a small world; and what is alive can end.
TEST(Regex, AgreesWithSetsOfTexts) {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts[i].size() < kLongest; ++i) {
    texts.push_back(texts[i] + "a");
    texts.push_back(texts[i] + "b");
  }
  const std::uint64_t seed = 20241;
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    const RandomRegex wanted = MakeRandomRegex(random, 5);
    SCOPED_TRACE("seed " + std::to_string(seed) + " regex " + wanted.regex);
    auto grammar = CompileRegex(wanted.regex);
    ASSERT_TRUE(grammar) << grammar.error().message;
    Recognizer recognizer(std::move(grammar).value());
    for (const std::string& text : texts) {
      ASSERT_EQ(Accepts(recognizer, text), wanted.texts.contains(text)) << text;
      const StateId state = recognizer.Step(recognizer.start(), text);
      if (state != kDeadState) {
        ASSERT_TRUE(CanEnd(recognizer, state)) << text;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::constraints
