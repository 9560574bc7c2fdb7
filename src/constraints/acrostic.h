// Acrostics: one line for each given head.
#ifndef KVASIR_CONSTRAINTS_ACROSTIC_H_
#define KVASIR_CONSTRAINTS_ACROSTIC_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "constraints/constraint.h"
#include "constraints/verse_rules.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

inline constexpr std::size_t kMaxLineChars = 64;

// For every head a line of chars_per_line characters: the head, set by the program (also one the
// vocabulary lacks), then Han characters of the model's choice; then ， after odd and 。 after even
// lines. Any number of heads; the last line always ends with 。, so with an odd number the last two
// lines both do. kUsage for heads that are not Han characters, for chars_per_line outside 1 …
// kMaxLineChars (the program offers 5 and 7), a vocabulary that cannot write the form, or rules
// that cannot be kept (verse_plan.h).
base::Result<std::unique_ptr<Matcher>> MakeAcrosticMatcher(const tokenizer::Vocabulary& vocabulary,
                                                           std::string_view heads,
                                                           std::size_t chars_per_line,
                                                           const VerseRules& rules = {});

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_ACROSTIC_H_
