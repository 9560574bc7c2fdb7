// What pre-tokenizers ask of Unicode: classes of characters, and the composed normal form.
#ifndef KVASIR_TOKENIZER_UNICODE_H_
#define KVASIR_TOKENIZER_UNICODE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::tokenizer {

// All functions here are thread-safe.

enum class CharacterClass {
  kLetter,  // General category L.
  kNumber,  // General category N.
  kSpace,   // Property White_Space.
  kOther,
};
CharacterClass ClassOf(std::uint32_t code_point);

// The text in Unicode's normalization form C (UAX #15). Requires valid UTF-8. Time grows as
// n · log n at most, however long a run of combining marks is.
std::string ToNfc(std::string_view text);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_UNICODE_H_
