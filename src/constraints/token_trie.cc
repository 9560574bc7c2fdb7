#include "constraints/token_trie.h"

#include <algorithm>
#include <string_view>

namespace kvasir::constraints {

using base::TokenId;

TokenTrie::TokenTrie(const tokenizer::Vocabulary& vocabulary) : vocab_size_(vocabulary.size()) {
  offsets_.push_back(0);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.Bytes(id);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (!bytes.empty()) tokens_.push_back(id);
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](TokenId a, TokenId b) {
    const std::string_view x = vocabulary.Bytes(a), y = vocabulary.Bytes(b);
    return x != y ? x < y : a < b;
  });
  std::vector<std::uint32_t> path;  // The nodes from the root to the last one added.
  std::string_view last;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view bytes = vocabulary.Bytes(tokens_[i]);
    const auto common = std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end()).first;
    while (path.size() > static_cast<std::size_t>(common - bytes.begin())) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
      path.pop_back();
    }
    while (path.size() < bytes.size()) {
      const auto byte = static_cast<std::uint8_t>(bytes[path.size()]);
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({byte, static_cast<std::uint32_t>(path.size()), 0, i, i});
    }
    nodes_[path.back()].last_token = i + 1;
    max_depth_ = std::max(max_depth_, nodes_[path.back()].depth);
    last = bytes;
  }
  for (const std::uint32_t node : path)
    nodes_[node].end = static_cast<std::uint32_t>(nodes_.size());
}

}  // namespace kvasir::constraints
