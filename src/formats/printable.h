// Untrusted text made fit for one line on a terminal.
#ifndef KVASIR_FORMATS_PRINTABLE_H_
#define KVASIR_FORMATS_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::formats {

// text between two quote marks, on one line: control characters (C0, DEL, C1), the quote mark and
// backslashes escaped, bytes that are not UTF-8 written as \xNN, and cut with "…" after
// max_characters.
std::string Quoted(std::string_view text, char quote = '\'', std::size_t max_characters = 64);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_PRINTABLE_H_
