// Text to tokens. The way back is the same for all kinds: stream_decoder.h.
#ifndef KVASIR_TOKENIZER_TOKENIZER_H_
#define KVASIR_TOKENIZER_TOKENIZER_H_

#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Immutable; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The tokens of text; decoding them gives text again, byte for byte. Text that looks like a
  // special or byte token ("<s>", "<0x41>") is text like any other (Case C121). Adds no start or
  // end token: whoever needs one asks vocabulary().add_bos(). Errors: kBadData for what is not
  // UTF-8 (naming offset and byte), kUsage for a character the vocabulary cannot express (naming
  // it, its U+ number and its offset in bytes).
  virtual base::Result<std::vector<TokenId>> Encode(std::string_view text) const = 0;

  virtual const Vocabulary& vocabulary() const = 0;
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_TOKENIZER_H_
