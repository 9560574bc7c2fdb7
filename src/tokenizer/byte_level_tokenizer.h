// Byte-level byte-pair encoding: bytes merged inside words, in the order the merges were learned.
#ifndef KVASIR_TOKENIZER_BYTE_LEVEL_TOKENIZER_H_
#define KVASIR_TOKENIZER_BYTE_LEVEL_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/piece_index.h"
#include "tokenizer/symbol_merges.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/user_tokens.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// The text is cut at user-defined tokens, then (after normalization, for qwen2) into words
// (pre_tokenizer.h). In a word, of all neighbours that a merge names the pair of the lowest rank is
// merged, the leftmost of equals first. For llama3 a word that is a token is that token, whatever
// the merges say. Source: GPT-2 (Radford et al. 2019), and the tokenizers published with the
// models.
//
// Owns its vocabulary. Immutable; thread-safe. Time n · log n for n bytes, however long the words.
class ByteLevelTokenizer : public Tokenizer {
 public:
  // kBadData if the vocabulary is of another kind, or naming a merge that is not two normal tokens
  // with a blank between them, or whose result is none.
  static base::Result<std::unique_ptr<ByteLevelTokenizer>> Make(Vocabulary vocabulary);

  base::Result<std::vector<TokenId>> Encode(std::string_view text) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  explicit ByteLevelTokenizer(Vocabulary vocabulary);
  base::Result<void> AddMerge(std::size_t rank);
  // Appends the tokens of a text without user-defined tokens.
  base::Result<void> AppendStretch(std::string_view text, std::vector<TokenId>& ids) const;
  // Appends the tokens of text[begin, begin + bytes).
  base::Result<void> AppendWord(std::string_view text, std::size_t begin, std::size_t bytes,
                                std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  PieceIndex pieces_;
  UserTokens user_tokens_;
  std::unordered_map<std::uint64_t, SymbolMerge> merges_;  // By both ids.
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_BYTE_LEVEL_TOKENIZER_H_
