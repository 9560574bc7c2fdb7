#include "tokenizer/user_tokens.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "tokenizer/symbol_merges.h"

namespace kvasir::tokenizer {

UserTokens::UserTokens(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) != TokenType::kUserDefined) continue;
    const std::string_view text = vocabulary.Bytes(id);
    if (ids_.emplace(text, id).second) {
      lengths_[static_cast<std::uint8_t>(text.front())].push_back(text.size());
    }
  }
  for (std::vector<std::size_t>& lengths : lengths_) {
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

UserTokens::Match UserTokens::FindFirst(std::string_view text, std::size_t from) const {
  for (std::size_t at = ids_.empty() ? text.size() : from; at < text.size(); ++at) {
    for (const std::size_t bytes : lengths_[static_cast<std::uint8_t>(text[at])]) {
      if (bytes > text.size() - at) continue;
      const auto found = ids_.find(text.substr(at, bytes));
      if (found != ids_.end()) return {at, bytes, found->second};
    }
  }
  return {text.size(), 0, kNoToken};
}

}  // namespace kvasir::tokenizer
