#include "corpus/copy_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/utf8.h"

namespace kvasir::corpus {
namespace {

const std::string kFive = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。";
const std::string kSeven = "朝辞白帝彩云间，千里江陵一日还。两岸猿声啼不住，轻舟已过万重山。";

bool NearCopy(const std::vector<std::string>& held_out, const std::string& poem) {
  return CopyFilter(held_out).IsNearCopy(poem);
}

TEST(CopyFilterTest, APoemIsACopyOfItself) {
  for (const std::string& poem : {kFive, kSeven}) {
    EXPECT_TRUE(NearCopy({kSeven, kFive}, poem));
    EXPECT_FALSE(NearCopy({}, poem));
  }
  EXPECT_FALSE(NearCopy({kFive}, kSeven));
  EXPECT_FALSE(NearCopy({kFive}, ""));
}

TEST(CopyFilterTest, FiveCharactersInARowAreEnoughAndFourAreNot) {
  const std::string other = "甲乙丙丁戊己庚，辛壬癸子丑寅卯。辰巳午未申酉戌，亥角亢氐房心尾。";
  const auto with = [&](const char* line) { return line + other.substr(other.find("，")); };
  EXPECT_TRUE(NearCopy({kSeven}, with("春辞白帝彩云夏")));
  EXPECT_FALSE(NearCopy({kSeven}, with("春春白帝彩云夏")));
  // The row does not run on over the end of a line: 还 and 两 are neighbours in kSeven no more than
  // 间 and 千 are.
  EXPECT_FALSE(NearCopy({kSeven}, with("春陵一日还两岸")));
}

TEST(CopyFilterTest, AFifthOfThePiecesIsEnough) {
  // A poem of four lines of five has 12 pieces of three. Every second line shares one: 2 of 12 are
  // less than a fifth, 3 are more.
  const std::string two = "春白日依夏，秋黄河入冬。东南西北中，甲乙丙丁戊。";
  const std::string three = "春白日依夏，秋黄河入冬。东欲穷千中，甲乙丙丁戊。";
  EXPECT_FALSE(NearCopy({kFive}, two));
  EXPECT_TRUE(NearCopy({kFive}, three));
  // The shorter of the two counts, whichever is held out.
  EXPECT_TRUE(NearCopy({three}, kFive + "甲甲甲甲甲，乙乙乙乙乙。丙丙丙丙丙，丁丁丁丁丁。"));
  EXPECT_TRUE(NearCopy({kFive + "甲甲甲甲甲，乙乙乙乙乙。丙丙丙丙丙，丁丁丁丁丁。"}, three));
  // Pieces of different held-out poems are not added up.
  EXPECT_FALSE(NearCopy({"白日依一二，三四五六七。一二三四五，六七八九十。",
                         "一二黄河入，三四五六七。一二三四五，六七八九十。",
                         "一二欲穷千，三四五六七。一二三四五，六七八九十。"},
                        "春白日依夏，秋黄河入冬。东欲穷千中，甲乙丙丁戊。"));
}

TEST(CopyFilterTest, APieceThatRepeatsCountsOnce) {
  const std::string drum = "山山山山山，水水水水水。花花花花花，月月月月月。";  // 4 pieces.
  EXPECT_TRUE(NearCopy({drum}, "山山山山日，水日水日水。花日花日花，月日月日月。"));
  EXPECT_FALSE(NearCopy({kFive + drum}, "山山山春日，夏秋冬东南。西北中甲乙，丙丁戊己庚。"));
}

TEST(CopyFilterTest, TextThatIsNotUtf8EndsThere) {
  EXPECT_TRUE(NearCopy({kFive}, "白日依山尽\xFF"));
  EXPECT_FALSE(NearCopy({kFive}, "\xFF" + kFive));
  EXPECT_FALSE(NearCopy({"\xFF" + kFive}, kFive));
}

// The rule once more, as it is written down: every stretch of every line compared with every other.
bool SlowNearCopy(const std::vector<std::string>& held_out, const std::string& poem) {
  using Stretch = std::vector<std::string_view>;
  const auto stretches = [](const std::string& text, std::size_t length) {
    std::set<Stretch> set;
    const auto characters = base::SplitCharacters(text);
    for (std::size_t i = 0; i + length <= characters.size(); ++i) {
      const Stretch s(characters.begin() + i, characters.begin() + i + length);
      const auto is_mark = [](std::string_view c) { return c == "，" || c == "。"; };
      if (std::none_of(s.begin(), s.end(), is_mark)) set.insert(s);
    }
    return set;
  };
  const auto shared = [&](const std::string& a, const std::string& b, std::size_t length) {
    const auto of_b = stretches(b, length);
    const auto of_a = stretches(a, length);
    return std::count_if(of_a.begin(), of_a.end(),
                         [&](const Stretch& s) { return of_b.contains(s); });
  };
  return std::any_of(held_out.begin(), held_out.end(), [&](const std::string& other) {
    const auto pieces = static_cast<std::size_t>(shared(poem, other, kCopyPiece));
    const std::size_t fewer =
        std::min(stretches(poem, kCopyPiece).size(), stretches(other, kCopyPiece).size());
    return shared(poem, other, kCopyRun) > 0 || (pieces > 0 && pieces * kCopyShare >= fewer);
  });
}

TEST(CopyFilterTest, AgreesWithComparingEverything) {
  std::uint32_t state = 1;
  const auto below = [&](std::uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
  };
  const std::vector<std::string> alphabet = {"春", "夏", "秋", "冬", "风", "花"};
  const auto poem = [&] {
    std::string text;
    for (int line = 0; line < 4; ++line) {
      for (int i = 0; i < 5; ++i) text += alphabet[below(6)];
      text += line % 2 == 0 ? "，" : "。";
    }
    return text;
  };
  int copies = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::string> held_out;
    for (std::uint32_t i = below(6); i > 0; --i) held_out.push_back(poem());
    const std::string candidate = poem();
    const bool copy = NearCopy(held_out, candidate);
    EXPECT_EQ(copy, SlowNearCopy(held_out, candidate)) << "trial " << trial;
    copies += copy;
  }
  EXPECT_GT(copies, 20);
  EXPECT_LT(copies, 380);
}

}  // namespace
}  // namespace kvasir::corpus
