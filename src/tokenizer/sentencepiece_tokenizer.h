// SentencePiece's byte-pair encoding: characters merged by the scores of what they become.
#ifndef KVASIR_TOKENIZER_SENTENCEPIECE_TOKENIZER_H_
#define KVASIR_TOKENIZER_SENTENCEPIECE_TOKENIZER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/piece_index.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/user_tokens.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// The text, led by a space if the vocabulary says so and the text is not empty, is cut at
// user-defined tokens; between them, of all neighbours that together are a normal token the pair of
// the greatest score is merged, the leftmost of equals first. A character that is no token and was
// not merged becomes its byte tokens. As GGUF's "llama" vocabularies and llama2.c's are encoded
// elsewhere, but for a ▁ (U+2581) in the text: others cannot tell it from a space, here it is left
// to its bytes, so that text comes back as it was.
//
// Owns its vocabulary. Immutable; thread-safe. Time n · log n for n characters.
class SentencePieceTokenizer : public Tokenizer {
 public:
  // kBadData if the vocabulary is of another kind.
  static base::Result<std::unique_ptr<SentencePieceTokenizer>> Make(Vocabulary vocabulary);

  base::Result<std::vector<TokenId>> Encode(std::string_view text) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  explicit SentencePieceTokenizer(Vocabulary vocabulary);
  // Appends the tokens of text[begin, end).
  base::Result<void> AppendStretch(std::string_view text, std::size_t begin, std::size_t end,
                                   std::vector<TokenId>& ids) const;
  base::Result<void> AppendBytes(std::string_view text, const Symbol& character,
                                 std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  PieceIndex pieces_;
  UserTokens user_tokens_;
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_SENTENCEPIECE_TOKENIZER_H_
