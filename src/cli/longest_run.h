// The longest run of a text that stands in a corpus: is it new, or remembered?
#ifndef KVASIR_CLI_LONGEST_RUN_H_
#define KVASIR_CLI_LONGEST_RUN_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::cli {

struct LongestRun {
  std::size_t characters = 0;
  std::string text;  // Of the longest ones the one that ends first in the corpus.
};

// Runs do not cross a newline. Requires both to be UTF-8. One pass over the corpus, whatever the
// sample's length.
LongestRun FindLongestRun(std::string_view corpus, std::string_view sample);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_LONGEST_RUN_H_
