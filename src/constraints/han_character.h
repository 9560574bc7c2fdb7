// Han characters as the verse corpus knows them, and characters in messages.
#ifndef KVASIR_CONSTRAINTS_HAN_CHARACTER_H_
#define KVASIR_CONSTRAINTS_HAN_CHARACTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kvasir::constraints {

// U+3400–9FFF and U+20000–2FFFF. Not 〇 (U+3007), not the compatibility forms (U+F900…).
constexpr bool IsHan(std::uint32_t code_point) {
  return (code_point >= 0x3400 && code_point <= 0x9FFF) ||
         (code_point >= 0x20000 && code_point <= 0x2FFFF);
}

// The one Han character that these bytes are, if they are one.
std::optional<std::uint32_t> SingleHanCharacter(std::string_view bytes);

// "'春' (U+6625)", or "U+000A" for what would spoil a line of text. Thread-safe.
std::string DescribeCharacter(std::uint32_t code_point);

// The characters of a list of line heads, e.g. "春眠不觉". kUsage if the list is empty, is not
// UTF-8, or holds anything but Han characters (punctuation, whitespace, emoji, letters): names
// place and character. Thread-safe.
base::Result<std::vector<std::uint32_t>> ParseHeads(std::string_view text);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_HAN_CHARACTER_H_
