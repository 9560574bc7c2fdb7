// VersePlan: a form with rules of tone and rhyme, compiled for one vocabulary.
#ifndef KVASIR_CONSTRAINTS_VERSE_PLAN_H_
#define KVASIR_CONSTRAINTS_VERSE_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_mask.h"
#include "constraints/form_matcher.h"
#include "constraints/tone_table.h"
#include "constraints/verse_lexicon.h"
#include "constraints/verse_pattern.h"
#include "constraints/verse_rules.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// What a poem so far leaves open: for each rhyme group the patterns its current line may have if
// the poem rhymes in that group. Without rhyme only entry 0 counts, for any group.
struct VerseState {
  std::array<PatternSet, kMaxRhymeGroups> patterns{};
  // The rhyme words so far: last characters of line 1 and of even lines. Kept only with rhyme.
  std::vector<std::uint32_t> words;

  // No whole poem begins like this.
  bool dead() const;
  friend bool operator==(const VerseState&, const VerseState&) = default;
};

// Immutable, thread-safe; keeps nothing of vocabulary and table.
//
// No dead ends: a state only holds a pattern under a group if a whole poem follows from both.
// Because whatever fills one place leaves the others free, but for rhyme words, it is enough that
//   1. each free place of the pattern has a character, and the line's head fits it;
//   2. a pattern of the next line may follow for which the same is true, and so on to the end;
//   3. the group has at least as many unused characters as rhyme words are to come, every one of
//      which may stand at every such place.
// 1 and 2 are known before the first character (LookAhead); 3 is kept by counting at the ends of
// line 1, the only place where a character of the group may be used up without need. ADR 0008 has
// the proof.
class VersePlan {
 public:
  // Requires at least one line, all of one length. kUsage for lines of other than 5 or 7
  // characters, a vocabulary that cannot write the form, or what no poem can meet; the message
  // tells whether the rhyme, a head or the vocabulary is why.
  static base::Result<VersePlan> Compile(const tokenizer::Vocabulary& vocabulary,
                                         std::span<const FormLine> lines, const VerseRules& rules,
                                         const ToneTable& table = ToneTable::Shipped());

  const std::shared_ptr<const CompiledForm>& form() const { return form_; }
  const VerseState& start() const { return start_; }

  // Whether a character of the model's choice stands here: no head, no punctuation.
  bool IsFree(const FormPlace& place) const {
    return place.column < chars_ && !(place.column == 0 && lines_[place.line].head);
  }

  // The state after this character at a free place; dead if it may not stand there. Requires a
  // free token and a state that is not dead.
  VerseState Advance(const VerseState& state, const FormPlace& place, base::TokenId token) const;

  // Sets exactly the tokens after which Advance is not dead.
  void Mask(const VerseState& state, const FormPlace& place, base::TokenMask& mask) const;

 private:
  struct Line {
    std::optional<Sound> head;
    std::vector<PatternSet> next;  // [patterns]: of the next line, those that may follow
    PatternSet open = 0;           // Those from which the poem can be filled, but for rhyme words.
  };

  VersePlan(VerseLexicon lexicon, const VerseRules& rules, std::size_t chars);

  // Fills open and next of all lines, from the last to the first, and start_; regards the first
  // `heads` lines' heads only.
  void LookAhead(std::size_t heads);
  bool CanStand(const LinePattern& pattern, std::size_t line, bool with_head) const;
  base::Error WhyImpossible(std::span<const FormLine> lines, const ToneTable& table);

  bool IsRhymeWord(const FormPlace& place) const {
    return rules_.rhyme && place.column + 1 == chars_ && (place.line == 0 || place.line % 2 == 1);
  }
  // Rhyme words wanted after line `line`.
  std::size_t WordsAfter(std::size_t line) const { return lines_.size() / 2 - (line + 1) / 2; }
  std::size_t WordsWanted() const { return rules_.new_words ? lines_.size() / 2 : 1; }
  // Whether line 1 may end with a character of the group and leave enough of them.
  bool HasSpare(std::size_t group) const {
    return !rules_.new_words || lexicon_.MemberCharacters(group) > WordsWanted();
  }
  bool FirstRhymes(const LinePattern& pattern) const { return rules_.tones && pattern.ends_level; }
  bool CanEndFirst(const LinePattern& pattern, std::size_t group) const;

  PatternSet Fitting(PatternSet patterns, std::size_t column, const Sound& sound) const;
  // Of these patterns, which line 1 keeps when it ends with such a character.
  PatternSet FirstKept(PatternSet patterns, std::size_t group, const Sound& sound) const;
  PatternSet Next(PatternSet patterns, std::size_t line) const;
  void MaskTones(PatternSet patterns, std::size_t column, base::TokenMask& mask) const;
  void MaskFirstEnd(const VerseState& state, base::TokenMask& mask) const;

  VerseLexicon lexicon_;
  VerseRules rules_;
  std::size_t chars_;
  std::vector<LinePattern> patterns_;
  std::shared_ptr<const CompiledForm> form_;
  std::vector<Line> lines_;
  std::vector<std::size_t> groups_;  // Those to choose from; {0} without rhyme.
  VerseState start_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_PLAN_H_
