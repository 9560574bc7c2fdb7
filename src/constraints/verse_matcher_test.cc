#include "constraints/verse_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "constraints/acrostic.h"
#include "constraints/test_vocabulary.h"
#include "constraints/verse_form.h"
#include "constraints/verse_judge.h"
#include "constraints/verse_plan.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

constexpr unsigned kSeed = 20240607;

// Small enough that everything runs out: three groups of which two share 光, each with a character
// that can end an oblique line too.
const ToneTable& SmallTable() {
  static constexpr RhymeGroupText kGroups[] = {{"阳", "阳光长"}, {"东", "东风中光"}, {"看", "看"}};
  static const ToneTable table = ToneTable::Make({"阳光东风", "月雨", "长中看", kGroups}).value();
  return table;
}

// 龘 has no tone; 风 is two tokens; the marks are not Han.
Vocabulary SmallVocabulary(std::string_view characters = "阳光东风月雨长中看龘") {
  return TestVocabulary(std::string(characters) + "，。a",
                        {{"风", TokenType::kNormal}, {"春风", TokenType::kNormal}});
}

std::vector<FormLine> Lines(std::size_t lines, std::size_t chars) {
  std::vector<FormLine> form(lines);
  for (std::size_t i = 0; i < lines; ++i) form[i] = {{}, chars, i % 2 == 0 ? kComma : kFullStop};
  return form;
}

VerseJudge::Lines Poem(std::string_view text) {
  VerseJudge::Lines poem(1);
  const std::vector<std::uint32_t> characters = base::Utf8ToCodePoints(text).value();
  for (const std::uint32_t c : characters) {
    if (c == kComma || c == kFullStop) {
      poem.emplace_back();
    } else {
      poem.back().push_back(c);
    }
  }
  poem.pop_back();
  return poem;
}

// Every combination of tones, rhyme and one rule off, with names for messages.
std::vector<std::pair<std::string, VerseRules>> AllRules() {
  std::vector<std::pair<std::string, VerseRules>> all;
  const std::pair<bool, bool> asked[] = {{true, false}, {false, true}, {true, true}};
  bool VerseRules::*const single[] = {&VerseRules::opposition, &VerseRules::adhesion,
                                      &VerseRules::lone_level, &VerseRules::three_levels,
                                      &VerseRules::rescue,     &VerseRules::new_words};
  for (const auto& [tones, rhyme] : asked) {
    const VerseRules rules{.tones = tones, .rhyme = rhyme};
    const std::string name = std::string(tones ? "tones " : "") + (rhyme ? "rhyme " : "");
    all.emplace_back(name, rules);
    for (bool VerseRules::*const rule : single) {
      VerseRules less = rules;
      less.*rule = false;
      all.emplace_back(name + "but for rule " + std::to_string(all.size()), less);
    }
    if (!rhyme) continue;
    VerseRules group = rules;
    group.rhyme_group = 1;
    all.emplace_back(name + "in one group", group);
  }
  return all;
}

std::vector<TokenId> Allowed(const Matcher& matcher, std::size_t vocab) {
  TokenMask mask(vocab);
  matcher.Mask(mask);
  std::vector<TokenId> allowed;
  for (TokenId id = 0; id < vocab; ++id) {
    if (mask.Test(id)) allowed.push_back(id);
  }
  return allowed;
}

// Whatever the mask lets through ends in a poem that the judge passes: no dead end, no breach.
TEST(VerseMatcher, EveryWalkEndsInAGoodPoem) {
  std::mt19937 random(kSeed);
  const Vocabulary vocabulary = SmallVocabulary();
  const std::pair<std::size_t, std::size_t> shapes[] = {{2, 5}, {3, 7}, {4, 5},
                                                        {4, 7}, {5, 5}, {6, 7}};
  for (const auto& [name, rules] : AllRules()) {
    const VerseJudge judge(rules, SmallTable());
    for (const auto& [lines, chars] : shapes) {
      const auto matcher = MakeRuledMatcher(vocabulary, Lines(lines, chars), rules, SmallTable());
      if (!matcher) continue;  // Too few rhyme words; the next test says when.
      for (int walk = 0; walk < 40; ++walk) {
        const auto poem = matcher.value()->Clone();
        std::string text;
        while (!poem->IsComplete()) {
          const std::vector<TokenId> allowed = Allowed(*poem, vocabulary.size());
          ASSERT_FALSE(allowed.empty()) << "seed " << kSeed << " " << name << text;
          for (TokenId id = 0; walk < 2 && id < vocabulary.size(); ++id) {
            const bool in_mask = std::ranges::binary_search(allowed, id);
            ASSERT_EQ(poem->Clone()->Accept(id), in_mask) << name << text << " " << id;
          }
          const TokenId token = allowed[random() % allowed.size()];
          ASSERT_TRUE(poem->Accept(token));
          text += vocabulary.Bytes(token);
        }
        ASSERT_TRUE(judge.Keeps(Poem(text))) << "seed " << kSeed << " " << name << text;
      }
    }
  }
}

// As many lines as the groups have words for, and not one more.
TEST(VerseMatcher, AllRhymeWordsCanBeUsedUp) {
  const Vocabulary vocabulary = SmallVocabulary();
  VerseRules rules{.tones = false, .rhyme = true};
  const auto possible = [&](std::size_t lines) {
    return MakeRuledMatcher(vocabulary, Lines(lines, 5), rules, SmallTable()).has_value();
  };
  EXPECT_TRUE(possible(8));  // 东 has four.
  EXPECT_TRUE(possible(9));
  EXPECT_FALSE(possible(10));
  rules.rhyme_group = 0;
  EXPECT_TRUE(possible(6));
  EXPECT_FALSE(possible(8));
  rules.rhyme_group = 2;
  EXPECT_TRUE(possible(2));
  EXPECT_FALSE(possible(4));
  rules.new_words = false;
  EXPECT_TRUE(possible(64));
}

// Good poems, found by trying couplets until the judge is content, are all accepted.
TEST(VerseMatcher, EveryGoodPoemIsAccepted) {
  std::mt19937 random(kSeed + 1);
  const Vocabulary vocabulary = SmallVocabulary();
  const std::string_view characters = "阳光东风月雨长中看";
  const std::vector<std::string_view> pool = base::SplitCharacters(characters);
  for (const auto& [name, rules] : AllRules()) {
    const VerseJudge judge(rules, SmallTable());
    for (const std::size_t chars : {5, 7}) {
      const auto matcher = MakeRuledMatcher(vocabulary, Lines(4, chars), rules, SmallTable());
      ASSERT_TRUE(matcher.has_value()) << name;
      for (int poem = 0; poem < 10; ++poem) {
        std::string text;
        for (int couplet = 0, tries = 0; couplet < 2;) {
          std::string longer = text;
          for (std::size_t i = 0; i < 2 * chars; ++i) {
            longer += pool[random() % pool.size()];
            if (i + 1 == chars) longer += "，";
          }
          longer += "。";
          if (judge.Keeps(Poem(longer))) {
            text = longer;
            ++couplet;
          } else if (++tries == 20000) {  // This beginning used up the words: another one.
            text.clear();
            couplet = tries = 0;
          }
        }
        const auto accepts = matcher.value()->Clone();
        for (const std::string_view c : base::SplitCharacters(text)) {
          ASSERT_TRUE(accepts->Accept(*vocabulary.FindPiece(c)))
              << "seed " << kSeed << " " << name << text << " at " << accepts->accepted_tokens();
        }
        ASSERT_TRUE(accepts->IsComplete());
      }
    }
  }
}

// Whether the judge passes any poem that begins with text; tries them all.
bool SomePoemBegins(const VerseJudge& judge, const std::vector<std::string_view>& pool,
                    std::size_t chars, const std::string& text, std::size_t free) {
  if (free == 0) return judge.Keeps(Poem(text));
  for (const std::string_view c : pool) {
    std::string longer = text + std::string(c);
    if (free == 1 || (free - 1) % chars == 0) longer += free == 1 ? "。" : "，";
    if (SomePoemBegins(judge, pool, chars, longer, free - 1)) return true;
  }
  return false;
}

// Near the end the mask is compared with all ways to finish: it bans nothing that could go on.
TEST(VerseMatcher, TheMaskIsExact) {
  std::mt19937 random(kSeed + 2);
  for (const std::string_view characters : {"阳光月长", "阳长雨", "东风中", "看长月阳"}) {
    const Vocabulary vocabulary = TestVocabulary(std::string(characters) + "，。");
    const std::vector<std::string_view> pool = base::SplitCharacters(characters);
    for (const auto& [name, rules] : AllRules()) {
      const VerseJudge judge(rules, SmallTable());
      const auto start = MakeRuledMatcher(vocabulary, Lines(2, 5), rules, SmallTable());
      for (int walk = 0; start && walk < 2; ++walk) {
        const auto matcher = start.value()->Clone();
        std::string text;
        std::size_t free = 10;
        while (free > 0) {
          const std::vector<TokenId> allowed = Allowed(*matcher, vocabulary.size());
          const bool character = allowed.size() > 1 || vocabulary.Bytes(allowed[0]) != "，";
          if (character && free <= 6) {
            for (const std::string_view c : pool) {
              std::string longer = text + std::string(c);
              if (free == 6 || free == 1) longer += free == 1 ? "。" : "，";
              ASSERT_EQ(std::ranges::binary_search(allowed, *vocabulary.FindPiece(c)),
                        SomePoemBegins(judge, pool, 5, longer, free - 1))
                  << "seed " << kSeed << " " << characters << " " << name << longer;
            }
          }
          const TokenId token = allowed[random() % allowed.size()];
          ASSERT_TRUE(matcher->Accept(token));
          text += vocabulary.Bytes(token);
          free -= character ? 1 : 0;
        }
      }
    }
  }
}

TEST(VerseMatcher, RollbackEqualsAFreshReplay) {
  std::mt19937 random(kSeed + 3);
  const Vocabulary vocabulary = SmallVocabulary();
  const VerseRules rules{.tones = true, .rhyme = true};
  const auto start = MakeRuledMatcher(vocabulary, Lines(6, 5), rules, SmallTable()).value();
  const auto matcher = start->Clone();
  std::vector<TokenId> accepted;
  TokenMask mask(vocabulary.size()), fresh_mask(vocabulary.size());
  for (int operation = 0; operation < 1000; ++operation) {
    if (random() % 20 == 0 || matcher->IsComplete()) {
      const std::size_t n = random() % (accepted.size() + 1);
      matcher->Rollback(n);
      accepted.resize(accepted.size() - n);
    } else {
      const std::vector<TokenId> allowed = Allowed(*matcher, vocabulary.size());
      accepted.push_back(allowed[random() % allowed.size()]);
      ASSERT_TRUE(matcher->Accept(accepted.back()));
      ASSERT_FALSE(matcher->Accept(static_cast<TokenId>(vocabulary.size())));
    }
    const auto fresh = start->Clone();
    for (const TokenId token : accepted) ASSERT_TRUE(fresh->Accept(token));
    matcher->Mask(mask);
    fresh->Mask(fresh_mask);
    ASSERT_EQ(mask, fresh_mask) << "seed " << kSeed;
    ASSERT_EQ(matcher->accepted_tokens(), accepted.size());
    ASSERT_EQ(matcher->ForcedTokens(), fresh->ForcedTokens());
    ASSERT_EQ(matcher->MaxRemainingTokens(), fresh->MaxRemainingTokens());
  }
}

TEST(VersePlan, KnowsWhatIsFreeAndWhatIsDead) {
  const Vocabulary vocabulary = SmallVocabulary();
  std::vector<FormLine> lines = Lines(2, 5);
  lines[1].head = 0x9F98;
  const auto plan =
      VersePlan::Compile(vocabulary, lines, {.tones = false, .rhyme = true}, SmallTable()).value();
  EXPECT_TRUE(plan.IsFree({0, 0, true}));
  EXPECT_FALSE(plan.IsFree({0, 5, true}));
  EXPECT_FALSE(plan.IsFree({1, 0, true}));
  EXPECT_FALSE(plan.start().dead());
  EXPECT_TRUE(VerseState{}.dead());
  const TokenId moon = *vocabulary.FindPiece("月");
  EXPECT_FALSE(plan.Advance(plan.start(), {0, 4, true}, moon).dead());
  EXPECT_TRUE(plan.Advance(plan.start(), {1, 4, true}, moon).dead());
  const VerseState ended = plan.Advance(plan.start(), {0, 4, true}, *vocabulary.FindPiece("看"));
  EXPECT_EQ(ended.words, std::vector<std::uint32_t>{0x770B});
  EXPECT_EQ(ended.patterns[2], 0);  // 看 was that group's only word.
  EXPECT_NE(ended.patterns[0], 0);
}

std::string Refusal(const Vocabulary& vocabulary, std::span<const FormLine> lines,
                    const VerseRules& rules) {
  const auto result = MakeRuledMatcher(vocabulary, lines, rules, SmallTable());
  EXPECT_FALSE(result.has_value());
  if (result.has_value()) return "";
  EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
  return result.error().message;
}

TEST(VerseMatcher, ImpossibleRequestsAreRefusedWithTheReason) {
  const VerseRules tones{.tones = true}, both{.tones = true, .rhyme = true};
  VerseRules group = both;
  group.rhyme_group = 2;
  EXPECT_EQ(Refusal(SmallVocabulary(), Lines(4, 5), group),
            "rhyme group 看 has too few characters in this model's vocabulary: 1 of the 2 that are "
            "needed as rhyme words");
  EXPECT_EQ(Refusal(SmallVocabulary("阳月"), Lines(8, 5), both),
            "no rhyme group has the 4 characters in this model's vocabulary that are needed as "
            "rhyme words");
  EXPECT_NE(Refusal(SmallVocabulary("阳光"), Lines(4, 5), tones).find("lacks characters"),
            std::string::npos);
  // Both are needed as rhyme words, and nothing else can end line 1.
  const VerseRules rhyme{.tones = false, .rhyme = true};
  EXPECT_NE(Refusal(TestVocabulary("阳长，。"), Lines(4, 5), rhyme).find("lacks characters"),
            std::string::npos);
  EXPECT_TRUE(
      MakeRuledMatcher(TestVocabulary("阳长月，。"), Lines(4, 5), rhyme, SmallTable()).has_value());
  EXPECT_NE(Refusal(SmallVocabulary(), Lines(4, 6), tones).find("5 or 7 characters, not 6"),
            std::string::npos);
  EXPECT_NE(Refusal(SmallVocabulary(), Lines(1, 5), both).find("one line alone"),
            std::string::npos);

  std::vector<FormLine> headed = Lines(4, 5);
  for (FormLine& line : headed) line.head = 0x6708;  // 月, oblique
  EXPECT_TRUE(MakeRuledMatcher(SmallVocabulary(), headed, tones, SmallTable()).has_value());
  VerseRules strict = tones;
  strict.rescue = false;
  EXPECT_EQ(Refusal(SmallVocabulary(), headed, strict),
            "head 4, '月' (U+6708), is oblique: after the heads before it no line 4 of this form "
            "can begin so");
  headed[2].head = 0x9F98;
  EXPECT_EQ(
      Refusal(SmallVocabulary(), headed, both),
      "head 3, '龘' (U+9F98), is of unknown tone: after the heads before it no line 3 of this "
      "form can begin so");
}

TEST(VerseMatcher, HeadsStandWhereTheyWereAsked) {
  std::mt19937 random(kSeed + 4);
  const Vocabulary vocabulary = TestVocabulary("天年月日花家华斜不一白落乌啼春眠觉，。");
  const VerseRules rules{.tones = true, .rhyme = true};
  for (const std::string_view heads : {"月落乌啼", "不一月白", "春眠不觉"}) {
    const auto matcher = MakeVerseMatcher(vocabulary, VerseForm::kWujue, heads, rules).value();
    for (int walk = 0; walk < 20; ++walk) {
      const auto poem = matcher->Clone();
      std::string text;
      while (!poem->IsComplete()) {
        const std::vector<TokenId> allowed = Allowed(*poem, vocabulary.size());
        const std::vector<TokenId> forced = poem->ForcedTokens();
        ASSERT_TRUE(forced.empty() || allowed == std::vector<TokenId>{forced[0]});
        const TokenId token = allowed.at(random() % allowed.size());
        ASSERT_TRUE(poem->Accept(token));
        text += vocabulary.Bytes(token);
      }
      const VerseJudge::Lines lines = Poem(text);
      ASSERT_TRUE(VerseJudge(rules, ToneTable::Shipped()).Keeps(lines)) << text;
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(lines[i][0], base::Utf8ToCodePoints(heads).value()[i]);
      }
    }
  }
}

// An acrostic of any number of lines goes on as the longer forms would.
TEST(VerseMatcher, AcrosticsCarryTonesAndRhyme) {
  std::mt19937 random(kSeed + 5);
  const Vocabulary vocabulary = TestVocabulary("天年月日花家华斜不一白前边烟然，。");
  const VerseRules rules{.tones = true, .rhyme = true};
  for (const std::string_view heads : {"春风", "春眠不", "春眠不觉晓处处闻啼鸟"}) {
    for (const std::size_t chars : {5, 7}) {
      const auto poem = MakeAcrosticMatcher(vocabulary, heads, chars, rules).value();
      std::string text;
      while (!poem->IsComplete()) {
        const std::vector<TokenId> allowed = Allowed(*poem, vocabulary.size());
        const TokenId token = allowed.at(random() % allowed.size());
        ASSERT_TRUE(poem->Accept(token));
        text += vocabulary.Bytes(token);
      }
      EXPECT_TRUE(VerseJudge(rules, ToneTable::Shipped()).Keeps(Poem(text))) << text;
    }
  }
  EXPECT_FALSE(MakeAcrosticMatcher(vocabulary, "春风", 6, rules).has_value());
  EXPECT_FALSE(MakeAcrosticMatcher(vocabulary, "春", 5, rules).has_value());
}

// The judge itself, on poems everybody knows.
TEST(VerseJudge, KnowsGoodFromBad) {
  const VerseRules rules{.tones = true, .rhyme = true};
  const VerseJudge judge(rules, ToneTable::Shipped());
  for (const char* good : {"白日依山尽，黄河入海流。欲穷千里目，更上一层楼。",
                           "远上寒山石径斜，白云生处有人家。停车坐爱枫林晚，霜叶红于二月花。",
                           "国破山河在，城春草木深。感时花溅泪，恨别鸟惊心。"
                           "烽火连三月，家书抵万金。白头搔更短，浑欲不胜簪。"}) {
    EXPECT_TRUE(judge.Keeps(Poem(good))) << good;
  }
  for (const char* bad : {"春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",     // Oblique rhymes.
                          "白日依山尽，黄河入海楼。欲穷千里目，更上一层楼。",     // One rhyme word.
                          "白日依山尽，黄河入海流。欲穷千里目，更上一层山。",     // No rhyme.
                          "白日依山尽，黄河入海流。白日依山尽，黄河入海楼。"}) {  // No adhesion.
    EXPECT_FALSE(judge.Keeps(Poem(bad))) << bad;
  }
}

}  // namespace
}  // namespace kvasir::constraints
