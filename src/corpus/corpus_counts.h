// What a text holds, counted in characters (code points).
#ifndef KVASIR_CORPUS_CORPUS_COUNTS_H_
#define KVASIR_CORPUS_CORPUS_COUNTS_H_

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace kvasir::corpus {

struct CorpusCounts {
  std::uint64_t lines = 0;                // Newlines; in a corpus of one poem a line, the poems.
  std::uint64_t characters = 0;           // Newlines included.
  std::uint64_t distinct_characters = 0;  // The newline included, if there is one.
};

// One pass over text. kBadData naming offset and byte if it is not UTF-8. Thread-safe.
base::Result<CorpusCounts> CountCorpus(std::string_view text);

// How often phrase stands in text, occurrences that overlap counted each; 0 for an empty phrase.
// With both in UTF-8 a match always begins at a character. Thread-safe.
std::uint64_t CountPhrase(std::string_view text, std::string_view phrase);

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_CORPUS_COUNTS_H_
