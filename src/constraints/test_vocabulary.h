// Small vocabularies for the tests of this folder.
#ifndef KVASIR_CONSTRAINTS_TEST_VOCABULARY_H_
#define KVASIR_CONSTRAINTS_TEST_VOCABULARY_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/character_vocabulary.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// Tokens added after those of the characters of a text, as (piece, type).
using ExtraTokens = std::vector<std::pair<std::string, tokenizer::TokenType>>;

inline tokenizer::Vocabulary TestVocabulary(std::string_view text, const ExtraTokens& extra = {}) {
  tokenizer::VocabularySpec spec = tokenizer::BuildCharacterVocabulary(text).value();
  for (const auto& [piece, type] : extra) {
    spec.pieces.push_back(piece);
    spec.scores.push_back(0.0f);
    spec.types.push_back(type);
  }
  return tokenizer::Vocabulary::Make(std::move(spec)).value();
}

// A vocabulary of exactly these tokens: no byte tokens, no specials.
inline tokenizer::Vocabulary BareVocabulary(const ExtraTokens& tokens) {
  tokenizer::VocabularySpec spec;
  for (const auto& [piece, type] : tokens) {
    spec.pieces.push_back(piece);
    spec.scores.push_back(0.0f);
    spec.types.push_back(type);
  }
  return tokenizer::Vocabulary::Make(std::move(spec)).value();
}

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TEST_VOCABULARY_H_
