// One token a character, byte tokens for characters the vocabulary lacks.
#ifndef KVASIR_TOKENIZER_CHARACTER_TOKENIZER_H_
#define KVASIR_TOKENIZER_CHARACTER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Owns its vocabulary. Immutable; thread-safe. Of two tokens for one character it uses the lower
// id.
class CharacterTokenizer : public Tokenizer {
 public:
  // kBadData if a normal or user-defined token holds more than one character, if pieces are written
  // byte by byte, or if a space is to lead each text: such a vocabulary needs another tokenizer.
  static base::Result<std::unique_ptr<CharacterTokenizer>> Make(Vocabulary vocabulary);

  base::Result<std::vector<TokenId>> Encode(std::string_view text) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  explicit CharacterTokenizer(Vocabulary vocabulary);
  // Appends the byte tokens of one character; false if any is missing.
  bool AppendBytes(std::string_view character, std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  std::vector<std::pair<std::uint32_t, TokenId>> characters_;  // Ascending, code points distinct.
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_CHARACTER_TOKENIZER_H_
