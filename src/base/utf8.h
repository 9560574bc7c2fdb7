// UTF-8: strict decoding (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF), encoding,
// and replacement of what is invalid by U+FFFD, one per maximal subpart (Unicode 15, §3.9).
#ifndef KVASIR_BASE_UTF8_H_
#define KVASIR_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kvasir::base {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Status {
  kOk,         // A whole character.
  kInvalid,    // Bytes that no continuation can make valid.
  kTruncated,  // A proper prefix of a character at the end of the input.
};

struct Utf8Step {
  Utf8Status status;
  std::uint32_t code_point;  // Only for kOk.
  std::size_t bytes;         // Bytes of the character, or of the maximal subpart (>= 1).
};

// Looks at the first character of a non-empty text.
Utf8Step DecodeUtf8(std::string_view text);

// Offset of the first byte that is not part of a valid character, or nothing if all is valid.
std::optional<std::size_t> FirstInvalidUtf8(std::string_view text);

// The characters of a text; kBadData naming the offset and byte if it is not UTF-8.
Result<std::vector<std::uint32_t>> Utf8ToCodePoints(std::string_view text);

// Requires a Unicode scalar value (<= 0x10FFFF, no surrogate).
void AppendUtf8(std::uint32_t code_point, std::string& out);

// The text with every maximal invalid subpart, and a truncated end, replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Splits text into its characters; requires valid UTF-8.
std::vector<std::string_view> SplitCharacters(std::string_view text);

}  // namespace kvasir::base

#endif  // KVASIR_BASE_UTF8_H_
