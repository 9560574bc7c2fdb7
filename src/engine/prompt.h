// The tokens a model starts from, and those it ends with.
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

// The tokens that end a text unless a person says otherwise: the vocabulary's end of a text and of
// a turn, each once; none where it has none. Thread-safe.
std::vector<base::TokenId> EndTokens(const tokenizer::Vocabulary& vocabulary);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_PROMPT_H_
