#include "eval/verse_score.h"

#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "constraints/constraint.h"
#include "constraints/han_character.h"
#include "constraints/verse_form.h"
#include "constraints/verse_rules.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::eval {
namespace {

using constraints::Matcher;
using constraints::VerseForm;
using tokenizer::CharacterTokenizer;

constexpr VerseForm kForms[] = {VerseForm::kWujue, VerseForm::kQijue, VerseForm::kWulv,
                                VerseForm::kQilv};

// The matcher that masks tokens, over a vocabulary of the texts' own characters. Null if these are
// too few for any poem by the rules.
std::unique_ptr<Matcher> MatcherOf(const tokenizer::Vocabulary& vocabulary, VerseForm form,
                                   const constraints::VerseRules& rules) {
  auto matcher = constraints::MakeVerseMatcher(vocabulary, form, {}, rules);
  return matcher ? std::move(matcher.value()) : nullptr;
}

bool Accepts(const std::unique_ptr<Matcher>& start, std::span<const base::TokenId> tokens) {
  if (!start) return false;
  const std::unique_ptr<Matcher> matcher = start->Clone();
  for (const base::TokenId token : tokens) {
    if (!matcher->Accept(token)) return false;
  }
  return matcher->IsComplete();
}

struct Judges {
  std::unique_ptr<Matcher> form, tones, rhyme, all;
};

class PairCounter {
 public:
  void Add(std::span<const std::uint32_t> text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (!constraints::IsHan(text[i - 1]) || !constraints::IsHan(text[i])) continue;
      distinct_.emplace(text[i - 1], text[i]);
      ++pairs_;
    }
  }
  double Distinct() const {
    return pairs_ == 0 ? 0.0 : static_cast<double>(distinct_.size()) / static_cast<double>(pairs_);
  }

 private:
  std::set<std::pair<std::uint32_t, std::uint32_t>> distinct_;
  std::uint64_t pairs_ = 0;
};

}  // namespace

base::Result<VerseScore> ScoreVerse(std::span<const std::string> texts) {
  std::vector<std::string_view> all(texts.begin(), texts.end());
  all.push_back("春，。");  // The marks, even if no text has them.
  KV_TRY(auto spec, tokenizer::BuildCharacterVocabulary(all));
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(std::move(spec)));
  KV_TRY(const auto tokenizer, CharacterTokenizer::Make(std::move(vocabulary)));
  std::vector<Judges> judges;
  for (const VerseForm form : kForms) {
    const auto matcher = [&](bool tones, bool rhyme) {
      return MatcherOf(tokenizer->vocabulary(), form, {.tones = tones, .rhyme = rhyme});
    };
    judges.push_back(
        {matcher(false, false), matcher(true, false), matcher(false, true), matcher(true, true)});
  }
  VerseScore score;
  PairCounter pairs;
  for (const std::string& text : texts) {
    ++score.texts;
    KV_TRY(const auto characters, base::Utf8ToCodePoints(text));
    pairs.Add(characters);
    KV_TRY(const auto tokens, tokenizer->Encode(text));
    for (const Judges& judge : judges) {
      if (!Accepts(judge.form, tokens)) continue;
      ++score.form;
      score.tones += Accepts(judge.tones, tokens) ? 1 : 0;
      score.rhyme += Accepts(judge.rhyme, tokens) ? 1 : 0;
      score.all += Accepts(judge.all, tokens) ? 1 : 0;
    }
  }
  score.distinct2 = pairs.Distinct();
  return score;
}

}  // namespace kvasir::eval
