// How well texts keep the rules of regulated verse, and how varied they are.
#ifndef KVASIR_EVAL_VERSE_SCORE_H_
#define KVASIR_EVAL_VERSE_SCORE_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace kvasir::eval {

struct VerseScore {
  std::uint64_t texts = 0;
  // Of these, texts that are exactly a wujue, qijue, wulv or qilv; of these again those that keep
  // all rules of tone, all of rhyme, and both (constraints/verse_rules.h).
  std::uint64_t form = 0;
  std::uint64_t tones = 0;
  std::uint64_t rhyme = 0;
  std::uint64_t all = 0;
  // Distinct pairs of neighbouring Han characters ÷ all such pairs (Li et al. 2016); 0 without any.
  // Falls as texts grow more: compare equal numbers of texts.
  double distinct2 = 0;
};

// Scores finished texts, each without its line break. kBadData for a text that is not UTF-8.
// Thread-safe.
base::Result<VerseScore> ScoreVerse(std::span<const std::string> texts);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERSE_SCORE_H_
