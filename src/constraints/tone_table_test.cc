#include "constraints/tone_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

std::uint32_t CodePoint(std::string_view character) {
  return base::Utf8ToCodePoints(character).value().at(0);
}

Sound Shipped(std::string_view character) {
  return ToneTable::Shipped().Find(CodePoint(character));
}

// Tones every dictionary of verse agrees on, entering tones (白 日 不) among the oblique ones.
TEST(ToneTable, TheShippedTableKnowsPlainTones) {
  for (std::string_view c : {"平", "春", "风", "山", "天", "人", "花", "秋", "云", "楼"}) {
    EXPECT_TRUE(Shipped(c).level && !Shipped(c).oblique) << c;
  }
  for (std::string_view c : {"仄", "月", "不", "白", "日", "雨", "柳", "去", "客", "一"}) {
    EXPECT_TRUE(!Shipped(c).level && Shipped(c).oblique) << c;
    EXPECT_EQ(Shipped(c).groups, 0u) << c;
  }
  for (std::string_view c : {"看", "中", "长", "思", "教", "难", "重", "行"}) {
    EXPECT_TRUE(Shipped(c).level && Shipped(c).oblique) << c;
  }
  EXPECT_FALSE(Shipped("a").known());
  EXPECT_FALSE(Shipped("。").known());
}

// Rhymes of poems everybody knows, and pairs that rhyme today but did not then.
TEST(ToneTable, TheShippedTableKnowsWhatRhymes) {
  const auto rhyme = [](std::string_view a, std::string_view b) {
    return (Shipped(a).groups & Shipped(b).groups) != 0;
  };
  EXPECT_TRUE(rhyme("光", "霜") && rhyme("霜", "乡"));  // 静夜思
  EXPECT_TRUE(rhyme("流", "楼"));                       // 登鹳雀楼
  EXPECT_TRUE(rhyme("深", "心") && rhyme("心", "金"));  // 春望
  EXPECT_TRUE(rhyme("哀", "回") && rhyme("来", "台"));  // 登高
  EXPECT_TRUE(rhyme("斜", "家") && rhyme("家", "花"));  // 山行
  EXPECT_FALSE(rhyme("东", "钟"));
  EXPECT_FALSE(rhyme("真", "蒸"));
  EXPECT_FALSE(rhyme("山", "年"));
  EXPECT_FALSE(rhyme("青", "生"));
  EXPECT_EQ(ToneTable::Shipped().groups(), 30u);
}

TEST(ToneTable, GroupsAreFoundByNameOrMember) {
  const ToneTable& table = ToneTable::Shipped();
  for (std::size_t g = 0; g < table.groups(); ++g) {
    EXPECT_EQ(table.FindGroup(table.GroupName(g)).value(), g);
  }
  EXPECT_EQ(table.FindGroup("风").value(), table.FindGroup("东").value());
  const auto refusal = [&](std::string_view text) {
    const auto result = table.FindGroup(text);
    EXPECT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
    return result.error().message;
  };
  EXPECT_NE(refusal("月").find("'月' (U+6708) is no rhyme group"), std::string::npos);
  EXPECT_NE(refusal("月").find("东冬江"), std::string::npos);
  EXPECT_TRUE(refusal("东冬").starts_with("'东冬' is no rhyme group: it must be one of"));
  EXPECT_TRUE(refusal("").starts_with("'' is no rhyme group"));
  EXPECT_TRUE(refusal("\xFF").starts_with("'\uFFFD' is no rhyme group"));
  std::uint32_t in_two = 0;
  for (std::uint32_t c = 0x4E00; c < 0xA000 && in_two == 0; ++c) {
    const bool named =
        std::ranges::any_of(std::views::iota(std::size_t{0}, table.groups()),
                            [&](std::size_t g) { return CodePoint(table.GroupName(g)) == c; });
    if (std::popcount(table.Find(c).groups) == 2 && !named) in_two = c;
  }
  std::string text;
  base::AppendUtf8(in_two, text);
  EXPECT_NE(refusal(text).find("more than one group"), std::string::npos);
}

TEST(ToneTable, RefusesTextsThatAreNoTable) {
  const auto refusal = [](const ToneTexts& texts) {
    const auto result = ToneTable::Make(texts);
    EXPECT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::ErrorCode::kBadData);
    return result.has_value() ? std::string() : result.error().message;
  };
  const RhymeGroupText good[] = {{"花", "花家"}};
  EXPECT_TRUE(ToneTable::Make({"花", "月", "家", good}).has_value());
  EXPECT_NE(refusal({"花\xFF", "月", "家", good}).find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal({"花", "花", "家", good}).find("'花' (U+82B1) stands twice"),
            std::string::npos);
  EXPECT_NE(refusal({"花", "家", "", good}).find("'家' (U+5BB6), which cannot be level"),
            std::string::npos);
  const RhymeGroupText twice[] = {{"花", "花花"}};
  EXPECT_NE(refusal({"花", "", "", twice}).find("twice"), std::string::npos);
  const RhymeGroupText nameless[] = {{"", "花"}};
  EXPECT_NE(refusal({"花", "", "", nameless}).find("a name of its own"), std::string::npos);
  const RhymeGroupText same[] = {{"花", "花"}, {"花", ""}};
  EXPECT_NE(refusal({"花", "", "", same}).find("a name of its own"), std::string::npos);
  const std::vector<RhymeGroupText> many(kMaxRhymeGroups + 1, {"花", "花"});
  EXPECT_NE(refusal({"花", "", "", many}).find("at most 32"), std::string::npos);
}

TEST(ToneTable, DescribesTones) {
  EXPECT_EQ(DescribeTone({true, false, 0}), "level");
  EXPECT_EQ(DescribeTone({false, true, 0}), "oblique");
  EXPECT_EQ(DescribeTone({true, true, 0}), "level or oblique");
  EXPECT_EQ(DescribeTone({}), "of unknown tone");
}

}  // namespace
}  // namespace kvasir::constraints
