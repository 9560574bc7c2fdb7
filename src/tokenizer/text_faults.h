// What tokenizers say of text they cannot take.
#ifndef KVASIR_TOKENIZER_TEXT_FAULTS_H_
#define KVASIR_TOKENIZER_TEXT_FAULTS_H_

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace kvasir::tokenizer {

// kBadData naming the first byte that is not part of a valid character, and its offset.
base::Result<void> CheckUtf8(std::string_view text);

// kUsage naming the character that begins at `at`, which the vocabulary cannot express.
base::Error MissingCharacter(std::string_view text, std::size_t at);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_TEXT_FAULTS_H_
