// What a reader sees of one token.
#ifndef KVASIR_TOKENIZER_TOKEN_TEXT_H_
#define KVASIR_TOKENIZER_TOKEN_TEXT_H_

#include <string>

#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Its text, or its piece ("<0xE6>", "</s>") where it has no whole character of its own. Always
// UTF-8. Requires id < vocabulary.size(). Thread-safe.
std::string TokenText(const Vocabulary& vocabulary, TokenId id);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_TOKEN_TEXT_H_
