// generate -i: a text written in turns, a person's lines and the model's continuations.
#ifndef KVASIR_CLI_INTERACTIVE_H_
#define KVASIR_CLI_INTERACTIVE_H_

#include <cstdio>

#include "base/result.h"
#include "cli/generate_flags.h"

namespace kvasir::cli {

// Reads lines from `in` until its end or /quit. A line is appended to the text, which is then
// continued, printed as it comes; an empty line continues it as it stands. Each turn is what
// `generate -p` makes of the whole text so far, with one seed. /help tells of the other lines that
// begin with a slash; what is said of them goes to stderr, the text and the tables to stdout. A
// turn that fails is told on stderr in one line and changes nothing; Ctrl-C ends a turn, which
// keeps what it wrote. Result: 0; kUsage for flags that do not go with turns; kIo if stdout takes
// no more or `in` cannot be read.
base::Result<int> RunInteractive(const GenerateFlags& flags, std::FILE* in);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_INTERACTIVE_H_
