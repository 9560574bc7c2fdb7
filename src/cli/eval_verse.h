// eval --verse N: free samples of a model beside the poems of a text.
#ifndef KVASIR_CLI_EVAL_VERSE_H_
#define KVASIR_CLI_EVAL_VERSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"

namespace kvasir::cli {

struct EvalVerseFlags {
  std::uint64_t samples = 0;          // 0: not asked for.
  std::optional<std::uint64_t> seed;  // Nothing: a random one, reported on stderr.
  std::string corpus;                 // A text in which to look for copied runs; empty: none.
};

// Draws samples at temperature 1 without any constraint, each up to its line break, and prints how
// many keep form, tones and rhyme, beside the lines of `poems` (held out, one poem a line). Shares
// are of all; distinct pairs are counted over equally many of both. kBadData for poems that are not
// UTF-8 or are none.
base::Result<int> RunEvalVerse(const OpenModel& open, const ModelFlags& model,
                               const EvalVerseFlags& flags, std::string_view poems, bool json);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_EVAL_VERSE_H_
