// Which tokens may be drawn at all: the default of a vocabulary, and a person's bans.
#ifndef KVASIR_CONSTRAINTS_DRAWABLE_TOKENS_H_
#define KVASIR_CONSTRAINTS_DRAWABLE_TOKENS_H_

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "base/token_mask.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// All functions here are thread-safe.

// Whether every normal token is one character: a vocabulary of the kind trained here.
bool IsCharacterLevel(const tokenizer::Vocabulary& vocabulary);

// The tokens that may be drawn when no constraint says otherwise. Of a character-level vocabulary:
// normal and user-defined tokens; so no byte, control or unknown token. Of another one: all but
// unknown tokens (its byte and control tokens were trained). Of neither those that were never
// trained: of type kUnused, or listed as untrained.
// end_tokens are allowed in both: whoever names one wants it drawn. Requires end_tokens < size().
base::TokenMask DefaultMask(const tokenizer::Vocabulary& vocabulary,
                            std::span<const base::TokenId> end_tokens = {});

// The ids that banning these texts (`--ban STR`) bans, ascending, each once: every normal or
// user-defined token whose text contains STR, and every byte token that could spell it. kUsage if
// no token is exactly STR: what the model writes as several tokens cannot be banned without banning
// its parts. A ban concerns drawing only; what a constraint forces is still set.
base::Result<std::vector<base::TokenId>> BannedTokens(const tokenizer::Vocabulary& vocabulary,
                                                      std::span<const std::string> texts);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_DRAWABLE_TOKENS_H_
