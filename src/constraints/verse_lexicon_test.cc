#include "constraints/verse_lexicon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "constraints/form_matcher.h"
#include "constraints/test_vocabulary.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;

TEST(VerseLexicon, SortsTokensByToneAndGroup) {
  static constexpr RhymeGroupText kGroups[] = {{"阳", "阳长"}, {"东", "东"}};
  const ToneTable table = ToneTable::Make({"阳东", "月", "长", kGroups}).value();
  const tokenizer::Vocabulary vocabulary = TestVocabulary(
      "阳月长龘a，。", {{"阳", TokenType::kUserDefined}, {"阳长", TokenType::kNormal}});
  const std::vector<FormLine> lines = {{{}, 5, kComma}};
  const CompiledForm form = CompiledForm::Compile(vocabulary, lines).value();
  const VerseLexicon known(vocabulary, form.free_tokens(), table, true);
  const VerseLexicon all(vocabulary, form.free_tokens(), table, false);
  const auto id = [&](std::string_view text) { return *vocabulary.FindPiece(text); };
  const auto second = static_cast<TokenId>(vocabulary.size() - 2);  // The other 阳.

  EXPECT_EQ(known.Tokens(true, false).Count(), 3u);  // 阳 twice, 长
  EXPECT_EQ(known.Tokens(false, true).Count(), 2u);  // 月 长
  EXPECT_EQ(known.Tokens(true, true).Count(), 1u);   // 长
  EXPECT_EQ(known.Tokens(false, false).Count(), 4u);
  EXPECT_EQ(all.Tokens(false, false).Count(), 5u);
  EXPECT_FALSE(known.Has(id("龘")));
  EXPECT_TRUE(all.Has(id("龘")));
  EXPECT_FALSE(all.Has(id("a")) || all.Has(id("，")) || all.Has(id("阳长")));
  EXPECT_EQ(all.CharacterOf(second), 0x9633u);
  EXPECT_EQ(all.SoundOf(id("长")), (Sound{true, true, 1}));
  EXPECT_TRUE(known.HasTokens(true, true));

  EXPECT_EQ(known.Members(0).size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(known.Members(0)));
  EXPECT_EQ(known.MemberCharacters(0), 2u);
  EXPECT_EQ(known.MemberCharacters(1), 0u);  // The vocabulary has no 东.

  TokenMask mask = known.Tokens(true, false);
  known.Ban(0x9633, mask);
  EXPECT_EQ(mask.Count(), 1u);
  EXPECT_TRUE(mask.Test(id("长")));
  known.Ban(0x4E1C, mask);
  EXPECT_EQ(mask.Count(), 1u);
}

}  // namespace
}  // namespace kvasir::constraints
