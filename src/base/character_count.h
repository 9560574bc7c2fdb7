// How many characters a text has.
#ifndef KVASIR_BASE_CHARACTER_COUNT_H_
#define KVASIR_BASE_CHARACTER_COUNT_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kvasir::base {

// Code points of a text in UTF-8: its bytes but those that continue a character.
inline std::uint64_t CountCharacters(std::string_view text) {
  return static_cast<std::uint64_t>(
      std::count_if(text.begin(), text.end(),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_CHARACTER_COUNT_H_
