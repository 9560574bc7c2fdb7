#include "eval/copied_lines.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace kvasir::eval {
namespace {

using Lines = std::vector<std::string_view>;

TEST(TellingLines, AreLongEnoughAndWhole) {
  EXPECT_EQ(
      TellingLines("春眠不觉晓，处处闻啼鸟。\nshort\n  twelve chars \t\r\n\nthe last line", true),
      (Lines{"春眠不觉晓，处处闻啼鸟。", "twelve chars", "the last line"}));
  EXPECT_EQ(TellingLines("one whole line\nthe last line", false), Lines{"one whole line"});
  EXPECT_EQ(TellingLines("", true), Lines{});
  EXPECT_EQ(TellingLines(" \n\t\n", true), Lines{});
}

TEST(CountCopied, FindsLinesAnywhere) {
  const std::string_view corpus = "first line here\na second line, longer\nthird";
  const CopiedLines found = CountCopied(
      corpus, Lines{"first line here", "first line hers", "second line,", "line here\na second",
                    "longer\nthird", "longer\nthird and more", "first line here"});
  EXPECT_EQ(found.lines, 7u);
  EXPECT_EQ(found.copied, 5u);
  EXPECT_EQ(CountCopied("", Lines{"first line here"}).copied, 0u);
  EXPECT_EQ(CountCopied(corpus, Lines{}).lines, 0u);
}

TEST(CountCopied, IsWhatFindFinds) {
  std::string corpus;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    corpus += static_cast<char>('a' + base::Philox4x32(1, {i, 0, 0, 0})[0] % 2);
  }
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto w = base::Philox4x32(2, {i, 0, 0, 0});
    texts.push_back(corpus.substr(w[0] % 19900, 8 + w[1] % 20));
    if (w[2] % 2 == 0) texts.back()[w[3] % texts.back().size()] ^= 3;  // 'a' and 'b'.
  }
  const Lines lines(texts.begin(), texts.end());
  std::uint64_t expected = 0;
  for (const std::string_view line : lines) expected += corpus.find(line) != std::string::npos;
  EXPECT_EQ(CountCopied(corpus, lines).copied, expected);
  EXPECT_GT(expected, 150u);
  EXPECT_LT(expected, 300u);
}

}  // namespace
}  // namespace kvasir::eval
