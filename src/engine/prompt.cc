#include "engine/prompt.h"

#include <algorithm>

namespace kvasir::engine {

base::Result<std::vector<base::TokenId>> PromptTokens(const tokenizer::Tokenizer& tokenizer,
                                                      std::string_view text) {
  const tokenizer::Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool starts = vocabulary.add_bos() && vocabulary.bos().has_value();
  KV_TRY(std::vector<base::TokenId> tokens,
         tokenizer.Encode(text.empty() && !starts ? std::string_view("\n") : text));
  if (starts) tokens.insert(tokens.begin(), *vocabulary.bos());
  return tokens;
}

std::vector<base::TokenId> EndTokens(const tokenizer::Vocabulary& vocabulary) {
  std::vector<base::TokenId> ends;
  for (const auto& end : {vocabulary.eos(), vocabulary.eot()}) {
    if (end && std::find(ends.begin(), ends.end(), *end) == ends.end()) ends.push_back(*end);
  }
  return ends;
}

}  // namespace kvasir::engine
