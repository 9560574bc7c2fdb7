#include "constraints/number_set.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "constraints/char_dfa.h"
#include "constraints/decimal.h"
#include "constraints/json_text.h"
#include "constraints/language_test_util.h"
#include "constraints/number_terms.h"
#include "constraints/regex.h"

namespace kvasir::constraints {
namespace {

TEST(Decimal, ParsesAndCompares) {
  const auto of = [](const char* text) { return Decimal::Parse(text).value(); };
  EXPECT_EQ(of("1.50"), of("15e-1"));
  EXPECT_EQ(of("-0"), of("0.000"));
  EXPECT_EQ(of("010"), of("10"));
  EXPECT_LT(of("-2"), of("-1.9"));
  EXPECT_LT(of("9.99"), of("10"));
  EXPECT_GT(of("1e300"), of("9e299"));
  EXPECT_LT(of("1e-300"), of("2e-300"));
  EXPECT_FALSE(Decimal::Parse("1e999999"));
  EXPECT_EQ(ToCount(of("2.0"), 10), 2u);
  EXPECT_EQ(ToCount(of("20e-1"), 10), 2u);
  EXPECT_FALSE(ToCount(of("2.5"), 10));
  EXPECT_FALSE(ToCount(of("11"), 10));
  EXPECT_FALSE(ToCount(of("-1"), 10));
}

NumberSet Between(const char* min, const char* max, bool open_min = false, bool open_max = false) {
  NumberSet set;
  set.min = NumberBound{Decimal::Parse(min).value(), open_min};
  set.max = NumberBound{Decimal::Parse(max).value(), open_max};
  return set;
}

TEST(NumberSet, Empty) {
  EXPECT_FALSE(NumberSet().empty());
  EXPECT_TRUE(Between("2", "1").empty());
  EXPECT_TRUE(Between("1", "1", true).empty());
  NumberSet integers = Between("0.1", "0.9");
  EXPECT_FALSE(integers.empty());
  integers.multiple_of = Decimal{1, 0};
  EXPECT_TRUE(integers.empty());
  NumberSet both = Between("-10", "-6");
  both.multiple_of = Decimal{5, 0};
  EXPECT_FALSE(both.empty());
  both.not_multiple_of = Decimal{10, 0};
  EXPECT_TRUE(both.empty());
}

// Every text of a small world: what is accepted is in the set by plain arithmetic, and what is
// possible begins something accepted, which is looked for among longer texts.
NumberPrefix JudgeNumber(const NumberSet& set, std::string_view text) {
  return NumberJudge(set).Judge(text);
}

// The judge against the set and the texts of the spelling, among them all beginnings of each.
void CheckTexts(const NumberSet& set, NumberSpelling spelling, Recognizer& numbers,
                const std::vector<std::string>& texts) {
  const NumberJudge judge(set, spelling);
  for (const std::string& text : texts) {
    const NumberPrefix judged = judge.Judge(text);
    const bool wanted = Accepts(numbers, text) && set.Contains(Decimal::Parse(text).value());
    ASSERT_EQ(judged.accepted, wanted) << text;
    for (std::size_t length = 0; wanted && length <= text.size(); ++length) {
      ASSERT_TRUE(judge.Judge(text.substr(0, length)).possible)
          << text.substr(0, length) << " of " << text;
    }
    if (judged.possible && !judged.accepted) {
      // One more character must be possible, too.
      bool next = false;
      for (const char c : std::string("0123456789.eE+-")) {
        next = next || judge.Judge(text + c).possible;
      }
      ASSERT_TRUE(next) << text;
    }
  }
}

TEST(NumberSet, JudgesEveryBeginning) {
  std::vector<NumberSet> sets = {NumberSet(),
                                 Between("1", "5"),
                                 Between("0", "0"),
                                 Between("-3", "12", true),
                                 Between("0.05", "0.07"),
                                 Between("7", "7"),
                                 Between("95", "105"),
                                 Between("-0.2", "0", false, true)};
  for (const std::size_t i : {1u, 3u, 6u}) {
    sets.push_back(sets[i]);
    sets.back().multiple_of = Decimal{1, 0};
    sets.push_back(sets[i]);
    sets.back().not_multiple_of = Decimal{1, 0};
    sets.push_back(sets[i]);
    sets.back().multiple_of = Decimal{4, 0};
    sets.push_back(sets[i]);
    sets.back().multiple_of = Decimal{5, -1};
  }
  for (const NumberSpelling spelling : {NumberSpelling::kAny, NumberSpelling::kPlain}) {
    // Texts of at most 6 characters over few letters; JSON numbers among them by a regex.
    Grammar grammar;
    grammar.start = AnyNumberTerm(*grammar.pool, spelling);
    Recognizer numbers(std::move(grammar));
    std::vector<std::string> texts = {""};
    for (std::size_t i = 0; i < texts.size() && texts[i].size() < 6; ++i) {
      for (const char c : std::string("-01579.e")) {
        const std::string text = texts[i] + c;
        if (AcceptsPrefix(numbers, text)) texts.push_back(text);
      }
    }
    for (std::size_t s = 0; s < sets.size(); ++s) CheckTexts(sets[s], spelling, numbers, texts);
  }
}

// Every number has one plain spelling: what Python and JavaScript write of whole numbers, and of
// others where they need no exponent.
TEST(NumberSet, PlainSpelling) {
  Grammar grammar;
  grammar.start = AnyNumberTerm(*grammar.pool, NumberSpelling::kPlain);
  Recognizer numbers(std::move(grammar));
  for (const char* text : {"0", "7", "-7", "10", "1200", "0.5", "-0.5", "10.25", "0.001", "-10.01",
                           "123456789012345678901234567890"}) {
    EXPECT_TRUE(Accepts(numbers, text)) << text;
    EXPECT_TRUE(NumberJudge({}, NumberSpelling::kPlain).Judge(text).accepted) << text;
  }
  for (const char* text : {"-0", "1.0", "1.50", "01", "1e0", "1E2", "-0.0", "0.", ".5", "+1"}) {
    EXPECT_FALSE(Accepts(numbers, text)) << text;
    EXPECT_FALSE(NumberJudge({}, NumberSpelling::kPlain).Judge(text).accepted) << text;
  }
}

TEST(NumberSet, FarExponents) {
  const NumberSet positive = Between("0", "1e300", true);
  EXPECT_TRUE(JudgeNumber(positive, "1e-99999999999999999999").accepted);
  EXPECT_FALSE(JudgeNumber(positive, "1e99999999999999999999").possible);
  NumberSet integers;
  integers.multiple_of = Decimal{1, 0};
  EXPECT_TRUE(JudgeNumber(integers, "1e99999999999999999999").accepted);
  EXPECT_FALSE(JudgeNumber(integers, "1e-1").possible);
  EXPECT_TRUE(JudgeNumber(integers, "100e-1").accepted);
  EXPECT_FALSE(JudgeNumber(integers, "100e-10").possible);
}

TEST(CharDfa, ProductsAgreeWithTheirParts) {
  TermPool pool;
  const auto dfa = [&](const char* regex, RegexMatch match) {
    return DfaOfTerm(pool, RegexTerm(pool, regex, RegexDialect::kPlain, match).value()).value();
  };
  const CharDfa a = dfa("(a|b)*a", RegexMatch::kWhole), b = dfa("bb", RegexMatch::kSearch);
  const std::vector<std::string> names = {"ab", "a", "bba"};
  const CharDfa n = DfaOfNames(names, 9);
  const CharDfa lengths = DfaOfLengths(2, 3).value();
  const CharDfa* parts[] = {&a, &b, &n, &lengths};
  const CharDfa product = ProductDfa(parts, [](std::span<const std::uint32_t> l) {
                            return 1 + l[0] + 2 * l[1] + 4 * l[2] + 64 * l[3];
                          }).value();
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts[i].size() < 5; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  for (const std::string& text : texts) {
    const std::uint32_t name = text == "ab" ? 1 : text == "a" ? 2 : text == "bba" ? 3 : 9;
    EXPECT_EQ(n.LabelOf(text), name) << text;
    EXPECT_EQ(product.LabelOf(text),
              1 + a.LabelOf(text) + 2 * b.LabelOf(text) + 4 * name + 64 * lengths.LabelOf(text));
    EXPECT_EQ(a.LabelOf(text),
              text.find('c') == std::string::npos && text.ends_with('a') ? 1u : 0u);
    EXPECT_EQ(b.LabelOf(text), text.find("bb") != std::string::npos ? 1u : 0u);
    EXPECT_EQ(lengths.LabelOf(text), text.size() == 2 || text.size() == 3 ? 1u : 0u);
  }
  EXPECT_TRUE(DfaOfTerm(pool, kNothingTerm).value().empty());
  EXPECT_TRUE(DfaOfLengths(3, 2).value().empty());
  EXPECT_FALSE(DfaOfLengths(0, 1'000'000));
}

// Every character of a set in every spelling, and nothing else.
TEST(JsonSpeller, SpellsEveryCharacter) {
  const std::vector<std::uint32_t> some = {0,      8,      10,      0x1F,    0x22,    0x2F,
                                           0x5C,   0x61,   0x7F,    0xE9,    0x6625,  0xD7FF,
                                           0xE000, 0xFFFF, 0x10000, 0x103FF, 0x1F600, 0x10FFFF};
  const CodePointSet sets[] = {CodePointSet::All(), CodePointSet::Range(0x10001, 0x10FFFE),
                               CodePointSet({{8, 0x22}, {0x61, 0x61}, {0x6625, 0xE000}})};
  for (const CodePointSet& set : sets) {
    Grammar grammar;
    grammar.start = JsonSpeller(*grammar.pool, StringSpelling::kAny).Character(set);
    Recognizer recognizer(std::move(grammar));
    for (const std::uint32_t c : some) {
      std::string plain;
      base::AppendUtf8(c, plain);
      const bool raw = c >= 0x20 && c != '"' && c != '\\';
      EXPECT_EQ(Accepts(recognizer, plain), raw && set.Contains(c)) << c;
      const std::string escaped =
          c < 0x10000 ? fmt::format("\\u{:04x}", c)
                      : fmt::format("\\u{:04X}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                                    0xDC00 + ((c - 0x10000) & 0x3FF));
      EXPECT_EQ(Accepts(recognizer, escaped), set.Contains(c)) << escaped;
    }
    EXPECT_EQ(Accepts(recognizer, "\\n"), set.Contains('\n'));
    EXPECT_FALSE(Accepts(recognizer, "\\ud800"));
    EXPECT_FALSE(Accepts(recognizer, "\\udc00"));
  }
}

TEST(JsonSpeller, PlainSpelling) {
  Grammar grammar;
  grammar.start = JsonSpeller(*grammar.pool, StringSpelling::kPlain).Character(CodePointSet::All());
  Recognizer recognizer(std::move(grammar));
  for (const char* text : {"a", "/", "\x7F", "é", "春", "\\n", "\\\"", "\\\\", "\\b", "\\f", "\\r",
                           "\\t", "\\u0000", "\\u001f", "\\u000b"}) {
    EXPECT_TRUE(Accepts(recognizer, text)) << text;
  }
  for (const char* text :
       {"\\u0061", "\\/", "\\u000a", "\\u001F", "\\u0022", "\n", "\"", "\\u6625"}) {
    EXPECT_FALSE(Accepts(recognizer, text)) << text;
  }
}

}  // namespace
}  // namespace kvasir::constraints
