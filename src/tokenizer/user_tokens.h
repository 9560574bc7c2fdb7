// User-defined tokens, which are cut out of a text before anything else is done to it.
#ifndef KVASIR_TOKENIZER_USER_TOKENS_H_
#define KVASIR_TOKENIZER_USER_TOKENS_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Holds views: the vocabulary must outlive it, in its place. Immutable; thread-safe.
class UserTokens {
 public:
  explicit UserTokens(const Vocabulary& vocabulary);

  struct Match {
    std::size_t begin;  // text.size() if there is none.
    std::size_t bytes;
    TokenId id;
  };
  // The first place at or after `from` where one stands; of several there, the longest.
  Match FindFirst(std::string_view text, std::size_t from) const;

 private:
  std::unordered_map<std::string_view, TokenId> ids_;
  std::array<std::vector<std::size_t>, 256> lengths_;  // By first byte: descending, distinct.
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_USER_TOKENS_H_
