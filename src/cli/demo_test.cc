#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/demo_texts.h"
#include "cli/longest_run.h"

namespace kvasir::cli {
namespace {

// Every text of a language, in the order of the struct, which holds nothing else.
std::vector<std::string_view> AllTexts(DemoLanguage language) {
  static_assert(sizeof(DemoTexts) % sizeof(std::string_view) == 0);
  const DemoTexts& texts = DemoTextsOf(language);
  const std::string_view* first = &texts.title;
  return {first, first + sizeof(DemoTexts) / sizeof(std::string_view)};
}

std::size_t CountOf(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(DemoTexts, AreCompleteAndTakeTheSameValuesInEveryLanguage) {
  const auto english = AllTexts(DemoLanguage::kEnglish);
  for (const DemoLanguage language : {DemoLanguage::kGerman, DemoLanguage::kChinese}) {
    const auto other = AllTexts(language);
    ASSERT_EQ(other.size(), english.size());
    for (std::size_t i = 0; i < english.size(); ++i) {
      EXPECT_FALSE(english[i].empty()) << "text " << i;
      EXPECT_FALSE(other[i].empty()) << "after: " << english[i];
      EXPECT_EQ(CountOf(other[i], "{}"), CountOf(english[i], "{}")) << other[i];
    }
  }
}

TEST(DemoTexts, LanguagesAreNamedByTheirCodes) {
  EXPECT_EQ(ParseDemoLanguage("en").value(), DemoLanguage::kEnglish);
  EXPECT_EQ(ParseDemoLanguage("de").value(), DemoLanguage::kGerman);
  EXPECT_EQ(ParseDemoLanguage("zh").value(), DemoLanguage::kChinese);
  const auto unknown = ParseDemoLanguage("fr");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, base::ErrorCode::kUsage);
  EXPECT_NE(unknown.error().message.find("'fr'"), std::string::npos);
}

TEST(DemoTexts, NumbersAreWrittenAsTheLanguageDoes) {
  EXPECT_EQ(DemoInteger(DemoLanguage::kEnglish, 120), "120");
  EXPECT_EQ(DemoInteger(DemoLanguage::kEnglish, 7260), "7,260");
  EXPECT_EQ(DemoInteger(DemoLanguage::kGerman, 1234567), "1.234.567");
  EXPECT_EQ(DemoDecimal(DemoLanguage::kChinese, 13.951, 2), "13.95");
  EXPECT_EQ(DemoDecimal(DemoLanguage::kGerman, 13.951, 2), "13,95");
}

// A run within a line; the sample's rest does not matter.
TEST(LongestRun, IsFoundWherever) {
  const LongestRun run = FindLongestRun("白日依山尽，黄河入海流。\n春眠不觉晓。\n", "夜黄河入海月");
  EXPECT_EQ(run.characters, 4u);
  EXPECT_EQ(run.text, "黄河入海");
}

TEST(LongestRun, DoesNotCrossALine) {
  const LongestRun run = FindLongestRun("春风\n吹又生", "春风吹又生");
  EXPECT_EQ(run.characters, 3u);
  EXPECT_EQ(run.text, "吹又生");
}

TEST(LongestRun, OfEqualOnesTheFirstInTheCorpusCounts) {
  EXPECT_EQ(FindLongestRun("山水。花月。", "花月山水").text, "山水");
}

TEST(LongestRun, IsEmptyWhereNothingIsShared) {
  EXPECT_EQ(FindLongestRun("山水", "花月").characters, 0u);
  EXPECT_EQ(FindLongestRun("", "花月").characters, 0u);
  EXPECT_EQ(FindLongestRun("山水", "").text, "");
}

// Against all pairs of places, over texts of few characters, where runs repeat and overlap.
TEST(LongestRun, AgreesWithASearchOfAllPlaces) {
  std::uint32_t state = 1;
  const auto text = [&](std::size_t size) {
    std::string out;
    for (; size > 0; --size) {
      state = state * 1664525u + 1013904223u;
      out += "abc\n"[state >> 30];
    }
    return out;
  };
  for (int round = 0; round < 200; ++round) {
    const std::string corpus = text(60);
    const std::string sample = text(20);
    std::size_t longest = 0;
    for (std::size_t begin = 0; begin < sample.size(); ++begin) {
      for (std::size_t size = 1; begin + size <= sample.size(); ++size) {
        const std::string part = sample.substr(begin, size);
        if (part.find('\n') == part.npos && corpus.find(part) != corpus.npos) {
          longest = std::max(longest, size);
        }
      }
    }
    EXPECT_EQ(FindLongestRun(corpus, sample).characters, longest) << corpus << "|" << sample;
  }
}

}  // namespace
}  // namespace kvasir::cli
