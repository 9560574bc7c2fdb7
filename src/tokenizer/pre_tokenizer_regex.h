// The published regular expressions that the pre-tokenizers stand for.
#ifndef KVASIR_TOKENIZER_PRE_TOKENIZER_REGEX_H_
#define KVASIR_TOKENIZER_PRE_TOKENIZER_REGEX_H_

#include <optional>
#include <string_view>

#include "tokenizer/pre_tokenizer.h"

namespace kvasir::tokenizer {

// As tokenizer.json files of the models hold it.
std::string_view PreTokenizerRegex(PreTokenizer kind);

// The kind whose expression is exactly this one, or nothing: another spelling may cut otherwise.
std::optional<PreTokenizer> FindPreTokenizerByRegex(std::string_view regex);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_PRE_TOKENIZER_REGEX_H_
