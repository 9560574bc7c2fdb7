// generate -i: a text written in turns, a person's lines and the model's continuations.
#ifndef KVASIR_CLI_INTERACTIVE_H_
#define KVASIR_CLI_INTERACTIVE_H_

#include <cstdio>
#include <functional>
#include <string>

#include "base/result.h"

namespace kvasir::cli {

// Continues the whole text so far, printing as it comes, and returns what it added.
using ContinueText = std::function<base::Result<std::string>(const std::string& text)>;

// Reads lines from `in` until its end or /quit. A line is appended to the text, which is then
// continued; an empty line continues it as it stands; /new starts over, /text prints it all. A turn
// that fails is told on stderr in one line and changes nothing. What to type is told on stderr too,
// when `in` is a terminal. Result: 0; kIo if stdout takes no more or `in` cannot be read.
base::Result<int> RunInteractive(std::FILE* in, std::string text, const ContinueText& next);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_INTERACTIVE_H_
