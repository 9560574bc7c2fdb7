// How many lines of generated texts stand in the text that a model was trained on.
#ifndef KVASIR_EVAL_COPIED_LINES_H_
#define KVASIR_EVAL_COPIED_LINES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::eval {

struct CopiedLines {
  std::uint64_t lines = 0;
  std::uint64_t copied = 0;  // Of these, found in the corpus, within a line or as a whole one.
};

// The lines of texts that are long enough to tell something: 12 characters or more, blanks at their
// ends apart. `whole` false: a text's last line is left out, since it was cut off.
std::vector<std::string_view> TellingLines(std::string_view text, bool whole);

// Which of these lines stand in the corpus, byte for byte. Requires lines of 8 bytes or more. One
// pass over the corpus, whatever the number of lines. Thread-safe.
CopiedLines CountCopied(std::string_view corpus, std::span<const std::string_view> lines);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_COPIED_LINES_H_
