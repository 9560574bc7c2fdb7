// The character-level vocabulary of a text, in the layout every model trained here has.
#ifndef KVASIR_TOKENIZER_CHARACTER_VOCABULARY_H_
#define KVASIR_TOKENIZER_CHARACTER_VOCABULARY_H_

#include <span>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// <unk> (id 0, unknown), <s> (1, start), </s> (2, end), the 256 byte tokens (3 … 258), then each
// distinct character of the texts as a normal token, in code-point order. No text is framed by
// <s> or </s>, nor led by a space.
//
// Stored as a "llama" vocabulary, with all scores 0, every reader of GGUF gives one token a
// character. Such readers write ▁ (U+2581) for a space before they look a piece up; so a space is
// stored as ▁, and ▁ itself, which the file then cannot tell from a space, is left to its bytes.
//
// kBadData if a text is not UTF-8 (naming which, offset and byte) or if all are empty. Thread-safe.
base::Result<VocabularySpec> BuildCharacterVocabulary(std::span<const std::string_view> texts);
base::Result<VocabularySpec> BuildCharacterVocabulary(std::string_view text);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_CHARACTER_VOCABULARY_H_
