// The four fixed forms of regulated verse.
#ifndef KVASIR_CONSTRAINTS_VERSE_FORM_H_
#define KVASIR_CONSTRAINTS_VERSE_FORM_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "constraints/constraint.h"
#include "constraints/verse_rules.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

enum class VerseForm { kWujue, kQijue, kWulv, kQilv };

struct VerseShape {
  std::string_view name;
  std::size_t lines;
  std::size_t chars;  // in a line, without punctuation
};

// wujue 4 × 5, qijue 4 × 7, wulv 8 × 5, qilv 8 × 7.
VerseShape ShapeOf(VerseForm form);

// The form of that name; kUsage naming the four.
base::Result<VerseForm> ParseVerseForm(std::string_view name);

// A poem of exactly that form: ， after odd lines, 。 after even ones, Han characters everywhere
// else, and nothing more. So of a qijue characters 8, 16, 24, 32 are punctuation and no others.
// heads: nothing, or one Han character for each line, all of them in the vocabulary: after one it
// lacks the model would go on from bytes it never saw (an acrostic may, acrostic.h). kUsage for
// other heads, another number of them, a vocabulary that cannot write the form, or rules that
// cannot be kept (verse_plan.h).
base::Result<std::unique_ptr<Matcher>> MakeVerseMatcher(
    const tokenizer::Vocabulary& vocabulary, VerseForm form,
    std::optional<std::string_view> heads = std::nullopt, const VerseRules& rules = {});

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_FORM_H_
