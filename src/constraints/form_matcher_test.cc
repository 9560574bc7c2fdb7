// The forms end to end: random walks through the masks, judged by a checker that knows only text.
#include "constraints/form_matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/utf8.h"
#include "constraints/acrostic.h"
#include "constraints/han_character.h"
#include "constraints/test_vocabulary.h"
#include "constraints/verse_form.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

constexpr std::string_view kText = "春眠不觉晓处闻啼鸟夜来风雨声花落知多少𠮷，。！a\n 〇";

// A character vocabulary plus what must never be written: tokens of two characters, with
// punctuation, never trained, control; and a second token for 春, which may be (Case C115).
Vocabulary Hostile() {
  return TestVocabulary(kText, {{"春风", TokenType::kNormal},
                                {"春。", TokenType::kNormal},
                                {"雪", TokenType::kUnused},
                                {"月", TokenType::kControl},
                                {"春", TokenType::kUserDefined},
                                {"落花时节又逢君落花时节又逢君", TokenType::kNormal}});
}

struct Form {
  std::string name;
  std::vector<std::string> heads;  // [lines]; "" = the model's choice
  std::size_t lines;
  std::size_t chars;
  std::unique_ptr<Matcher> matcher;
};

std::vector<std::string> Split(std::string_view heads) {
  std::vector<std::string> out;
  for (std::string_view head : base::SplitCharacters(heads)) out.emplace_back(head);
  return out;
}

std::vector<Form> AllForms(const Vocabulary& vocabulary) {
  std::vector<Form> forms;
  const std::pair<const char*, VerseForm> verses[] = {{"wujue", VerseForm::kWujue},
                                                      {"qijue", VerseForm::kQijue},
                                                      {"wulv", VerseForm::kWulv},
                                                      {"qilv", VerseForm::kQilv}};
  const std::size_t lines[] = {4, 4, 8, 8}, chars[] = {5, 7, 5, 7};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string heads = lines[i] == 4 ? "春处不觉" : "春眠不觉晓闻𠮷春";
    forms.push_back({verses[i].first, std::vector<std::string>(lines[i]), lines[i], chars[i],
                     MakeVerseMatcher(vocabulary, verses[i].second).value()});
    forms.push_back({std::string(verses[i].first) + " with heads", Split(heads), lines[i], chars[i],
                     MakeVerseMatcher(vocabulary, verses[i].second, heads).value()});
  }
  // 学, 龘 and 㐀 are in no vocabulary here: they are set as bytes.
  for (std::string_view heads : {"春", "学无止境", "春眠龘", "春眠不觉晓龘𠮷㐀", "春春春春春春"}) {
    for (std::size_t n : {1, 2, 5, 7}) {
      forms.push_back({"acrostic " + std::string(heads) + std::to_string(n), Split(heads),
                       Split(heads).size(), n, MakeAcrosticMatcher(vocabulary, heads, n).value()});
    }
  }
  return forms;
}

// Whether text is (a beginning of) the form, by characters only.
bool IsPrefixOf(const Form& form, std::string_view text, bool whole) {
  std::vector<std::string> characters = Split(text);
  if (characters.size() > form.lines * (form.chars + 1)) return false;
  if (whole && characters.size() != form.lines * (form.chars + 1)) return false;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const std::size_t line = i / (form.chars + 1);
    const std::size_t column = i % (form.chars + 1);
    const std::uint32_t c = base::DecodeUtf8(characters[i]).code_point;
    const bool han = (c >= 0x3400 && c <= 0x9FFF) || (c >= 0x20000 && c <= 0x2FFFF);
    if (column == form.chars) {
      const bool stop = line % 2 == 1 || line + 1 == form.lines;
      if (characters[i] != (stop ? "。" : "，")) return false;
    } else if (column == 0 && !form.heads[line].empty()) {
      if (characters[i] != form.heads[line]) return false;
    } else if (!han) {
      return false;
    }
  }
  return true;
}

// Checks one state: the mask against Accept, and against the text checker for every token that is
// text. (While the program sets a character as bytes, only its next byte may come.)
void CheckMask(const Form& form, const Vocabulary& vocabulary, const Matcher& matcher,
               const std::string& text) {
  TokenMask mask(vocabulary.size());
  mask.SetAll();
  matcher.Mask(mask);
  const std::vector<TokenId> forced = matcher.ForcedTokens();
  const bool whole_characters = !base::FirstInvalidUtf8(text).has_value();
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::unique_ptr<Matcher> probe = matcher.Clone();
    ASSERT_EQ(probe->Accept(id), mask.Test(id)) << form.name << " " << id;
    ASSERT_EQ(probe->accepted_tokens(), matcher.accepted_tokens() + (mask.Test(id) ? 1 : 0));
    const TokenType type = vocabulary.type(id);
    if (!forced.empty()) {
      ASSERT_EQ(mask.Test(id), id == forced[0]) << form.name << " " << id;
    } else {
      const bool is_text = type == TokenType::kNormal || type == TokenType::kUserDefined;
      const bool one = is_text && base::SplitCharacters(vocabulary.Bytes(id)).size() == 1;
      ASSERT_TRUE(whole_characters);
      ASSERT_EQ(mask.Test(id),
                !matcher.IsComplete() && one &&
                    IsPrefixOf(form, text + std::string(vocabulary.Bytes(id)), false))
          << form.name << " token " << id << " after " << text;
    }
  }
}

TEST(FormMatcher, RandomWalksKeepTheirForm) {
  constexpr unsigned kSeed = 31337;
  std::mt19937 random(kSeed);
  const Vocabulary vocabulary = Hostile();
  for (Form& form : AllForms(vocabulary)) {
    for (int walk = 0; walk < 30; ++walk) {
      const std::unique_ptr<Matcher> matcher = form.matcher->Clone();
      std::string text;
      TokenMask mask(vocabulary.size());
      while (!matcher->IsComplete()) {
        ASSERT_FALSE(matcher->MayEnd());
        if (walk < 2) CheckMask(form, vocabulary, *matcher, text);
        matcher->Mask(mask);
        std::vector<TokenId> allowed;
        for (TokenId id = 0; id < vocabulary.size(); ++id) {
          if (mask.Test(id)) allowed.push_back(id);
        }
        ASSERT_FALSE(allowed.empty()) << form.name;
        const TokenId token = allowed[random() % allowed.size()];
        ASSERT_TRUE(matcher->Accept(token));
        text += vocabulary.Bytes(token);
      }
      EXPECT_TRUE(matcher->MayEnd());
      EXPECT_EQ(matcher->MaxRemainingTokens(), 0u);
      CheckMask(form, vocabulary, *matcher, text);
      ASSERT_FALSE(base::FirstInvalidUtf8(text).has_value()) << form.name;
      ASSERT_TRUE(IsPrefixOf(form, text, true))
          << "seed " << kSeed << " " << form.name << " " << text;
    }
  }
}

// The number of every punctuation character of a qijue, counted from 1, is a multiple of 8.
TEST(FormMatcher, QijueHasPunctuationAt8And16And24And32) {
  const Vocabulary vocabulary = Hostile();
  const auto matcher = MakeVerseMatcher(vocabulary, VerseForm::kQijue).value();
  TokenMask mask(vocabulary.size());
  const TokenId comma = *vocabulary.FindPiece("，"), stop = *vocabulary.FindPiece("。");
  for (std::size_t i = 1; i <= 32; ++i) {
    matcher->Mask(mask);
    if (i % 8 == 0) {
      EXPECT_EQ(mask.Count(), 1u);
      const TokenId mark = i % 16 == 0 ? stop : comma;
      EXPECT_EQ(matcher->ForcedTokens(), std::vector<TokenId>{mark});
      ASSERT_TRUE(matcher->Accept(mark));
    } else {
      EXPECT_FALSE(mask.Test(comma) || mask.Test(stop)) << i;
      EXPECT_TRUE(matcher->ForcedTokens().empty());
      EXPECT_EQ(matcher->MaxRemainingTokens(), 33 - i);
      ASSERT_TRUE(matcher->Accept(*vocabulary.FindPiece("花")));
    }
  }
  EXPECT_TRUE(matcher->IsComplete());
  EXPECT_FALSE(matcher->Accept(*vocabulary.FindPiece("花")));
}

TEST(FormMatcher, RollbackEqualsAFreshReplay) {
  constexpr unsigned kSeed = 99;
  std::mt19937 random(kSeed);
  const Vocabulary vocabulary = Hostile();
  for (Form& form : AllForms(vocabulary)) {
    const std::unique_ptr<Matcher> matcher = form.matcher->Clone();
    std::vector<TokenId> accepted;
    TokenMask mask(vocabulary.size()), fresh_mask(vocabulary.size());
    for (int operation = 0; operation < 200; ++operation) {
      if (random() % 4 == 0 || matcher->IsComplete()) {
        const std::size_t n = random() % (accepted.size() + 1);
        matcher->Rollback(n);
        accepted.resize(accepted.size() - n);
      } else {
        const auto token = static_cast<TokenId>(random() % vocabulary.size());
        const std::vector<TokenId> forced = matcher->ForcedTokens();
        const TokenId tried = forced.empty() || random() % 3 == 0 ? token : forced[0];
        if (matcher->Accept(tried)) accepted.push_back(tried);
      }
      const std::unique_ptr<Matcher> fresh = form.matcher->Clone();
      for (TokenId token : accepted) ASSERT_TRUE(fresh->Accept(token));
      matcher->Mask(mask);
      fresh->Mask(fresh_mask);
      ASSERT_EQ(mask, fresh_mask) << "seed " << kSeed << " " << form.name;
      ASSERT_EQ(matcher->ForcedTokens(), fresh->ForcedTokens());
      ASSERT_EQ(matcher->accepted_tokens(), accepted.size());
      ASSERT_EQ(matcher->IsComplete(), fresh->IsComplete());
    }
  }
}

TEST(FormMatcher, ForcedTokensRunToTheNextChoice) {
  const Vocabulary vocabulary = Hostile();
  const auto matcher = MakeAcrosticMatcher(vocabulary, "春龘", 1).value();
  // 龘 is U+9F98: E9 BE 98.
  const std::vector<TokenId> all = {*vocabulary.FindPiece("春"), *vocabulary.FindPiece("，"),
                                    *vocabulary.ByteToken(0xE9), *vocabulary.ByteToken(0xBE),
                                    *vocabulary.ByteToken(0x98), *vocabulary.FindPiece("。")};
  EXPECT_EQ(matcher->ForcedTokens(), all);
  for (TokenId token : all) ASSERT_TRUE(matcher->Accept(token));
  EXPECT_TRUE(matcher->IsComplete());
  EXPECT_TRUE(matcher->ForcedTokens().empty());
}

TEST(FormMatcher, AVocabularyOfOneCharacterLeavesNothingToDraw) {
  const Vocabulary vocabulary = TestVocabulary("花，。");
  const auto matcher = MakeVerseMatcher(vocabulary, VerseForm::kWujue).value();
  EXPECT_EQ(matcher->ForcedTokens().size(), 24u);
}

// A character that the model never learned may be a head, which the program sets; it is not drawn.
TEST(FormMatcher, UntrainedCharactersAreSetButNotDrawn) {
  tokenizer::VocabularySpec spec = TestVocabulary("春眠，。").spec();
  const TokenId sleep = *TestVocabulary("春眠，。").FindPiece("眠");
  spec.untrained = {sleep};
  const Vocabulary vocabulary = Vocabulary::Make(spec).value();
  const FormLine line = {.head = U'眠', .chars = 5, .punctuation = U'。'};
  const CompiledForm form = CompiledForm::Compile(vocabulary, std::span(&line, 1)).value();
  EXPECT_FALSE(form.free_tokens().Test(sleep));
  EXPECT_TRUE(form.free_tokens().Test(*vocabulary.FindPiece("春")));
  EXPECT_EQ(form.slots().front(), sleep);
}

TEST(FormMatcher, OutOfRangeTokensAreRefused) {
  const Vocabulary vocabulary = Hostile();
  const auto matcher = MakeVerseMatcher(vocabulary, VerseForm::kWujue).value();
  EXPECT_FALSE(matcher->Accept(static_cast<TokenId>(vocabulary.size())));
  EXPECT_FALSE(matcher->Accept(~TokenId{0}));
}

template <typename T>
void ExpectUsage(const base::Result<T>& result, const std::string& message) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
}

TEST(FormMatcher, RefusesVocabulariesThatCannotWriteIt) {
  const Vocabulary latin = TestVocabulary("abc，。");
  ExpectUsage(MakeVerseMatcher(latin, VerseForm::kQilv), "cannot write verse");
  const Vocabulary no_comma =
      BareVocabulary({{"春", TokenType::kNormal}, {"。", TokenType::kNormal}});
  ExpectUsage(MakeVerseMatcher(no_comma, VerseForm::kQilv), "'，' (U+FF0C)");
  const Vocabulary bare = BareVocabulary(
      {{"春", TokenType::kNormal}, {"，", TokenType::kNormal}, {"。", TokenType::kNormal}});
  ExpectUsage(MakeAcrosticMatcher(bare, "春龘", 5), "'龘' (U+9F98)");
  EXPECT_TRUE(MakeAcrosticMatcher(bare, "春春", 5).has_value());
  // A character known only as a control or never-trained token is not in the vocabulary.
  const Vocabulary control = BareVocabulary({{"春", TokenType::kNormal},
                                             {"，", TokenType::kNormal},
                                             {"。", TokenType::kNormal},
                                             {"月", TokenType::kControl}});
  ExpectUsage(MakeAcrosticMatcher(control, "月", 5), "'月' (U+6708)");
}

}  // namespace
}  // namespace kvasir::constraints
