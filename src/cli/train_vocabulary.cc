#include "cli/train_vocabulary.h"

#include <span>

#include "base/utf8.h"
#include "constraints/han_character.h"
#include "tokenizer/byte_pair_trainer.h"
#include "tokenizer/character_vocabulary.h"
#include "tokenizer/unicode.h"

namespace kvasir::cli {

bool IsMostlyHan(std::string_view text) {
  std::uint64_t letters = 0, han = 0;
  while (!text.empty()) {
    const base::Utf8Step step = base::DecodeUtf8(text);
    text.remove_prefix(step.bytes);
    letters += tokenizer::ClassOf(step.code_point) == tokenizer::CharacterClass::kLetter;
    han += constraints::IsHan(step.code_point);
  }
  return 2 * han > letters;
}

base::Result<tokenizer::VocabularySpec> MakeVocabulary(const VocabularyChoice& choice,
                                                       std::string_view text,
                                                       std::string_view held_out) {
  const bool characters = choice.tokenizer == TokenizerChoice::kAuto
                              ? !choice.tokens && IsMostlyHan(text)
                              : choice.tokenizer == TokenizerChoice::kCharacter;
  if (!characters) {
    return tokenizer::TrainBytePairs(
        std::span(&text, 1), {.vocabulary = choice.tokens.value_or(kDefaultBytePairVocabulary)});
  }
  if (choice.tokens) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "--vocab {} is not for --tokenizer char, whose tokens are the "
                           "characters of the texts",
                           *choice.tokens);
  }
  const std::string_view both[] = {text, held_out};
  return tokenizer::BuildCharacterVocabulary(both);
}

}  // namespace kvasir::cli
