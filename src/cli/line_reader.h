// Lines from standard input: a person's, with a history that the arrow keys walk, or a file's.
#ifndef KVASIR_CLI_LINE_READER_H_
#define KVASIR_CLI_LINE_READER_H_

#include <cstdio>
#include <optional>
#include <string>

#include "base/result.h"

namespace kvasir::cli {

// A line is edited where `in` and stderr are terminals and the program was built with libedit;
// else it is read as it comes. Prompts go to stderr, and only where `in` is a terminal.
// Single-threaded; one for the process, since libedit keeps its state there.
class LineReader {
 public:
  explicit LineReader(std::FILE* in);

  // Whether a person types.
  bool interactive() const { return interactive_; }

  // The next line without its newline; nothing at the end. kUsage if it is longer than 1 MiB (the
  // rest of it is skipped), kIo if it cannot be read.
  base::Result<std::optional<std::string>> Read(const char* prompt);

 private:
  base::Result<std::optional<std::string>> ReadPlain();

  std::FILE* const in_;
  const bool interactive_;
};

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_LINE_READER_H_
