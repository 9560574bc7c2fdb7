// The vocabulary of a model that is to be trained.
#ifndef KVASIR_CLI_TRAIN_VOCABULARY_H_
#define KVASIR_CLI_TRAIN_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::cli {

enum class TokenizerChoice {
  kAuto,       // Characters where more than half of the letters are Han, else byte pairs.
  kCharacter,  // One token a character of the texts.
  kBytePairs,  // Byte-level byte-pair encoding (tokenizer/byte_pair_trainer.h).
};

inline constexpr std::uint64_t kDefaultBytePairVocabulary = 4096;  // Tokens.

struct VocabularyChoice {
  TokenizerChoice tokenizer = TokenizerChoice::kAuto;
  std::optional<std::uint64_t> tokens = std::nullopt;  // Of byte pairs, at most.
};

// Whether more than half of the letters of a text are Han. Requires UTF-8.
bool IsMostlyHan(std::string_view text);

// Characters are taken from both texts, so that the held-out one has no unknown character; byte
// pairs are learned from the text alone. kUsage for a number of tokens that a character vocabulary
// cannot have; the errors of the makers. Requires UTF-8.
base::Result<tokenizer::VocabularySpec> MakeVocabulary(const VocabularyChoice& choice,
                                                       std::string_view text,
                                                       std::string_view held_out);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_VOCABULARY_H_
