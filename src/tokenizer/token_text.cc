#include "tokenizer/token_text.h"

#include "base/utf8.h"

namespace kvasir::tokenizer {

std::string TokenText(const Vocabulary& vocabulary, TokenId id) {
  const std::string_view bytes = vocabulary.Bytes(id);
  if (bytes.empty() || base::FirstInvalidUtf8(bytes)) return vocabulary.piece(id);
  return std::string(bytes);
}

}  // namespace kvasir::tokenizer
