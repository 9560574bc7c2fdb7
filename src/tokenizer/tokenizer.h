// Text to tokens. The way back is the same for all kinds: stream_decoder.h.
//
// A continuation of a prompt is decoded from the middle of a text: its first token keeps its space
// ("Once upon" goes on " a time"), so that prompt and continuation, joined, are the whole text.
// Only where nothing but a start token stands before is it decoded from the start. llama2.c prints
// its stories so; llama.cpp leaves the space of such a first token in what it streams.
#ifndef KVASIR_TOKENIZER_TOKENIZER_H_
#define KVASIR_TOKENIZER_TOKENIZER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Immutable; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The tokens of text; decoding them as a whole text (Decode) gives text again, byte for byte (a
  // qwen2 vocabulary: text's normalization form C). Where texts are led by a space, that is the
  // first token's first byte: Decode takes it off. Text that looks like a special or byte token
  // ("<s>", "<0x41>") is text like any other (Case C121); a user-defined token in it is that token.
  // Adds no start or end token: whoever needs one asks vocabulary().add_bos(). Errors: kBadData for
  // what is not UTF-8 (naming offset and byte), kUsage for a character the vocabulary cannot
  // express (naming it, its U+ number and its offset in bytes).
  virtual base::Result<std::vector<TokenId>> Encode(std::string_view text) const = 0;

  virtual const Vocabulary& vocabulary() const = 0;
};

// The tokenizer that a vocabulary is for: of characters (IsCharacterLevel, no space in front), else
// of its kind. kBadData if it is not whole: see the tokenizers' own Make. Thread-safe.
base::Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocabulary vocabulary);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_TOKENIZER_H_
