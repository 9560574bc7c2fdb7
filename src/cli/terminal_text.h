// Text laid out in columns of a terminal, where Chinese characters are two columns wide.
#ifndef KVASIR_CLI_TERMINAL_TEXT_H_
#define KVASIR_CLI_TERMINAL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::cli {

// Columns that valid UTF-8 without control characters takes: 2 for wide characters (East Asian
// Width W and F of Unicode 15, and emoji), 0 for combining ones, else 1.
std::size_t DisplayWidth(std::string_view text);

// The text followed by spaces up to this many columns; never cut.
std::string PadRight(std::string_view text, std::size_t columns);

// A token's text in a table: ⏎ for a newline, ⇥ for a tab, ␣ for a lone space, other controls as
// \xNN.
std::string Visible(std::string_view text);

// Lines of at most this many columns, broken at spaces and between wide characters, never before
// Chinese punctuation; each begins with indent. Newlines of the text are kept.
std::string Wrap(std::string_view text, std::size_t columns, std::string_view indent);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TERMINAL_TEXT_H_
