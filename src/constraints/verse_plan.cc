#include "constraints/verse_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "constraints/han_character.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;
using base::TokenMask;

constexpr PatternSet Bit(std::size_t pattern) { return static_cast<PatternSet>(1u << pattern); }

bool Has(PatternSet set, std::size_t pattern) { return (set & Bit(pattern)) != 0; }

void AllowAll(const TokenMask& tokens, TokenMask& mask) {
  for (std::size_t i = 0; i < tokens.words().size(); ++i) {
    for (std::uint64_t word = tokens.words()[i]; word != 0; word &= word - 1) {
      mask.Allow(static_cast<TokenId>(i * TokenMask::kWordBits +
                                      static_cast<std::size_t>(std::countr_zero(word))));
    }
  }
}

bool Needs(std::uint32_t bits, std::size_t column) { return (bits >> column & 1) != 0; }

}  // namespace

bool VerseState::dead() const {
  return std::ranges::all_of(patterns, [](PatternSet set) { return set == 0; });
}

VersePlan::VersePlan(VerseLexicon lexicon, const VerseRules& rules, std::size_t chars)
    : lexicon_(std::move(lexicon)),
      rules_(rules),
      chars_(chars),
      patterns_(LinePatterns(rules, chars)) {}

base::Result<VersePlan> VersePlan::Compile(const tokenizer::Vocabulary& vocabulary,
                                           std::span<const FormLine> lines, const VerseRules& rules,
                                           const ToneTable& table) {
  KV_CHECK(!lines.empty());
  const std::size_t chars = lines.front().chars;
  if (chars != 5 && chars != 7) {
    return MakeError(ErrorCode::kUsage,
                     "tones and rhyme are for lines of 5 or 7 characters, not {}", chars);
  }
  if (rules.rhyme && lines.size() < 2) {
    return MakeError(ErrorCode::kUsage, "one line alone has no rhyme: 2 or more are needed");
  }
  KV_TRY(CompiledForm form, CompiledForm::Compile(vocabulary, lines));
  VersePlan plan(VerseLexicon(vocabulary, form.free_tokens(), table, rules.tones), rules, chars);
  plan.form_ = std::make_shared<const CompiledForm>(std::move(form));
  plan.lines_.resize(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    KV_CHECK(lines[i].chars == chars);
    if (lines[i].head) plan.lines_[i].head = table.Find(*lines[i].head);
  }
  if (!rules.rhyme || rules.rhyme_group) {
    plan.groups_ = {rules.rhyme_group.value_or(0)};
    KV_CHECK(!rules.rhyme || plan.groups_.front() < table.groups());
  } else {
    for (std::size_t g = 0; g < table.groups(); ++g) plan.groups_.push_back(g);
  }
  plan.LookAhead(lines.size());
  if (plan.start_.dead()) return plan.WhyImpossible(lines, table);
  return plan;
}

void VersePlan::LookAhead(std::size_t heads) {
  for (std::size_t i = lines_.size(); i-- > 0;) {
    Line& line = lines_[i];
    const bool last = i + 1 == lines_.size();
    line.next.assign(patterns_.size(), 0);
    line.open = 0;
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      if (!CanStand(patterns_[p], i, i < heads)) continue;
      for (std::size_t q = 0; !last && q < patterns_.size(); ++q) {
        if (Has(lines_[i + 1].open, q) && MayFollow(rules_, patterns_[p], patterns_[q], i + 1)) {
          line.next[p] |= Bit(q);
        }
      }
      if (last ? !patterns_[p].wants_rescue : line.next[p] != 0) line.open |= Bit(p);
    }
  }
  start_ = {};
  for (const std::size_t g : groups_) {
    if (rules_.rhyme && lexicon_.MemberCharacters(g) < WordsWanted()) continue;
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      if (!Has(lines_[0].open, p)) continue;
      if (!rules_.rhyme || CanEndFirst(patterns_[p], g)) start_.patterns[g] |= Bit(p);
    }
  }
}

bool VersePlan::CanStand(const LinePattern& pattern, std::size_t line, bool with_head) const {
  if (!MayStand(rules_, pattern, line)) return false;
  const std::optional<Sound>& head = lines_[line].head;
  if (head && with_head) {
    if (!pattern.Fits(0, *head) || (rules_.tones && !head->known())) return false;
  }
  for (std::size_t column = head ? 1 : 0; column < chars_; ++column) {
    if (IsRhymeWord({line, column, true})) continue;  // Counted, not looked for.
    if (!lexicon_.HasTokens(Needs(pattern.level, column), Needs(pattern.oblique, column))) {
      return false;
    }
  }
  return true;
}

bool VersePlan::CanEndFirst(const LinePattern& pattern, std::size_t group) const {
  if (FirstRhymes(pattern)) return HasSpare(group);
  const bool oblique = Needs(pattern.oblique, chars_ - 1);
  if (HasSpare(group)) return lexicon_.HasTokens(false, oblique);
  const TokenMask& tokens = lexicon_.Tokens(false, oblique);
  for (TokenId id = 0; id < lexicon_.vocab_size(); ++id) {
    if (tokens.Test(id) && (lexicon_.SoundOf(id).groups >> group & 1) == 0) return true;
  }
  return false;
}

base::Error VersePlan::WhyImpossible(std::span<const FormLine> lines, const ToneTable& table) {
  if (rules_.rhyme_group && lexicon_.MemberCharacters(*rules_.rhyme_group) < WordsWanted()) {
    return MakeError(ErrorCode::kUsage,
                     "rhyme group {} has too few characters in this model's vocabulary: {} of the "
                     "{} that are needed as rhyme words",
                     table.GroupName(*rules_.rhyme_group),
                     lexicon_.MemberCharacters(*rules_.rhyme_group), WordsWanted());
  }
  const bool enough = !rules_.rhyme || std::ranges::any_of(groups_, [&](std::size_t g) {
    return lexicon_.MemberCharacters(g) >= WordsWanted();
  });
  if (!enough) {
    return MakeError(ErrorCode::kUsage,
                     "no rhyme group has the {} characters in this model's vocabulary that are "
                     "needed as rhyme words",
                     WordsWanted());
  }
  LookAhead(0);
  if (start_.dead()) {
    return MakeError(ErrorCode::kUsage,
                     "this model's vocabulary lacks characters that the form needs by these rules");
  }
  std::size_t heads = 0;
  while (!start_.dead()) LookAhead(++heads);
  const std::uint32_t head = lines[heads - 1].head.value();
  return MakeError(
      ErrorCode::kUsage,
      "head {}, {}, is {}: after the heads before it no line {} of this form can begin "
      "so",
      heads, DescribeCharacter(head), DescribeTone(table.Find(head)), heads);
}

PatternSet VersePlan::Fitting(PatternSet patterns, std::size_t column, const Sound& sound) const {
  PatternSet kept = 0;
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    if (Has(patterns, p) && patterns_[p].Fits(column, sound)) kept |= Bit(p);
  }
  return kept;
}

PatternSet VersePlan::FirstKept(PatternSet patterns, std::size_t group, const Sound& sound) const {
  const bool member = (sound.groups >> group & 1) != 0;
  PatternSet kept = 0;
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    const bool may = FirstRhymes(patterns_[p]) ? member : !member || HasSpare(group);
    if (Has(patterns, p) && may) kept |= Bit(p);
  }
  return kept;
}

PatternSet VersePlan::Next(PatternSet patterns, std::size_t line) const {
  if (line + 1 == lines_.size()) return patterns;
  PatternSet next = 0;
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    if (Has(patterns, p)) next |= lines_[line].next[p];
  }
  return next;
}

VerseState VersePlan::Advance(const VerseState& state, const FormPlace& place,
                              TokenId token) const {
  if (!lexicon_.Has(token)) return {};
  const Sound& sound = lexicon_.SoundOf(token);
  const std::uint32_t character = lexicon_.CharacterOf(token);
  const bool word = IsRhymeWord(place);
  if (word && rules_.new_words && std::ranges::find(state.words, character) != state.words.end()) {
    return {};
  }
  VerseState after;
  for (const std::size_t g : groups_) {
    PatternSet kept = Fitting(state.patterns[g], place.column, sound);
    if (word && place.line == 0) kept = FirstKept(kept, g, sound);
    if (word && place.line > 0 && (sound.groups >> g & 1) == 0) kept = 0;
    after.patterns[g] = place.column + 1 == chars_ ? Next(kept, place.line) : kept;
  }
  after.words = state.words;
  if (word) after.words.push_back(character);
  return after;
}

void VersePlan::Mask(const VerseState& state, const FormPlace& place, TokenMask& mask) const {
  if (!IsRhymeWord(place)) {
    PatternSet patterns = 0;
    for (const std::size_t g : groups_) patterns |= state.patterns[g];
    MaskTones(patterns, place.column, mask);
    return;
  }
  if (place.line == 0) {
    MaskFirstEnd(state, mask);
    return;
  }
  mask.ClearAll();
  for (const std::size_t g : groups_) {
    if (state.patterns[g] == 0) continue;
    for (const TokenId id : lexicon_.Members(g)) mask.Allow(id);
  }
  if (!rules_.new_words) return;
  for (const std::uint32_t word : state.words) lexicon_.Ban(word, mask);
}

// A place is level, oblique or either in each pattern, so the union of what they allow is one of
// four sets.
void VersePlan::MaskTones(PatternSet patterns, std::size_t column, TokenMask& mask) const {
  bool level = false, oblique = false;
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    if (!Has(patterns, p)) continue;
    const bool must_level = Needs(patterns_[p].level, column);
    const bool must_oblique = Needs(patterns_[p].oblique, column);
    if (!must_level && !must_oblique) {
      mask = lexicon_.Tokens(false, false);
      return;
    }
    level |= must_level;
    oblique |= must_oblique;
  }
  if (!(level && oblique)) {
    mask = lexicon_.Tokens(level, oblique);
    return;
  }
  mask = lexicon_.Tokens(true, false);
  AllowAll(lexicon_.Tokens(false, true), mask);
}

void VersePlan::MaskFirstEnd(const VerseState& state, TokenMask& mask) const {
  const std::size_t column = chars_ - 1;
  PatternSet whole = 0;  // Patterns that leave the choice free under some group.
  for (const std::size_t g : groups_) {
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      if (!FirstRhymes(patterns_[p]) && HasSpare(g)) whole |= state.patterns[g] & Bit(p);
    }
  }
  mask.ClearAll();
  if (whole != 0) MaskTones(whole, column, mask);
  for (const std::size_t g : groups_) {
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      if (!Has(state.patterns[g], p) || Has(whole, p)) continue;
      if (FirstRhymes(patterns_[p])) {
        for (const TokenId id : lexicon_.Members(g)) mask.Allow(id);
        continue;
      }
      // The group's characters are all needed later: those outside it.
      const TokenMask& tokens = lexicon_.Tokens(false, Needs(patterns_[p].oblique, column));
      for (TokenId id = 0; id < lexicon_.vocab_size(); ++id) {
        if (tokens.Test(id) && (lexicon_.SoundOf(id).groups >> g & 1) == 0) mask.Allow(id);
      }
    }
  }
}

}  // namespace kvasir::constraints
