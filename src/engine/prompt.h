// From a prompt's text to the tokens a model starts from.
#ifndef KVASIR_ENGINE_PROMPT_H_
#define KVASIR_ENGINE_PROMPT_H_

#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::engine {

// The start token first, where the vocabulary asks for one (add_bos), then the text's tokens. An
// empty text without a start token becomes a newline: what ends one text begins the next. At least
// one token. Errors as Tokenizer::Encode. Thread-safe.
base::Result<std::vector<base::TokenId>> PromptTokens(const tokenizer::Tokenizer& tokenizer,
                                                      std::string_view text);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_PROMPT_H_
