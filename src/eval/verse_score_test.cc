#include "eval/verse_score.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::eval {
namespace {

const std::string kGuanQue = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。";
const std::string kChunXiao = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";
const std::string kShanXing = "远上寒山石径斜，白云生处有人家。停车坐爱枫林晚，霜叶红于二月花。";

VerseScore Score(const std::vector<std::string>& texts) { return ScoreVerse(texts).value(); }

TEST(VerseScore, CountsWhatIsKept) {
  // All rules; the form alone (its rhymes are oblique); rhyme alone; tones alone; nothing.
  const VerseScore score =
      Score({kGuanQue, kShanXing, kChunXiao, "白日依山尽，黄水入海流。欲穷千里目，更上一层楼。",
             "白日依山尽，黄河入海流。欲穷千里目，更上一层山。", "白日依山尽，黄河入海流。", ""});
  EXPECT_EQ(score.texts, 7u);
  EXPECT_EQ(score.form, 5u);
  EXPECT_EQ(score.rhyme, 3u);
  EXPECT_EQ(score.tones, 3u);
  EXPECT_EQ(score.all, 2u);
}

TEST(VerseScore, EveryFormIsKnown) {
  for (const std::size_t lines : {4, 8}) {
    for (const std::size_t chars : {5, 7}) {
      std::string text;
      for (std::size_t i = 0; i < lines; ++i) {
        for (std::size_t c = 0; c < chars; ++c) text += "花";
        text += i % 2 == 0 ? "，" : "。";
      }
      EXPECT_EQ(Score({text}).form, 1u);
      EXPECT_EQ(Score({text + "花"}).form, 0u);
      EXPECT_EQ(Score({text.substr(3)}).form, 0u);
    }
  }
}

TEST(VerseScore, DistinctPairsDoNotCrossMarks) {
  EXPECT_DOUBLE_EQ(Score({"花花花，月花"}).distinct2, 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(Score({"花月", "花月"}).distinct2, 0.5);
  EXPECT_DOUBLE_EQ(Score({"ab"}).distinct2, 0.0);
  EXPECT_DOUBLE_EQ(Score({}).distinct2, 0.0);
}

TEST(VerseScore, RefusesWhatIsNotText) {
  const auto result = ScoreVerse(std::vector<std::string>{"\xFF"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kBadData);
}

}  // namespace
}  // namespace kvasir::eval
