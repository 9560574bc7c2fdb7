// From the text of a normal token to its id.
#ifndef KVASIR_TOKENIZER_PIECE_INDEX_H_
#define KVASIR_TOKENIZER_PIECE_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "tokenizer/symbol_merges.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// kNormal tokens only: what merging makes is never a control, byte or user-defined token (Case
// C121). Holds views: the vocabulary must outlive it, in its place. Immutable; thread-safe.
class PieceIndex {
 public:
  explicit PieceIndex(const Vocabulary& vocabulary) {
    ids_.reserve(vocabulary.size());
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.type(id) != TokenType::kNormal) continue;
      const std::string_view bytes = vocabulary.Bytes(id);
      ids_.emplace(bytes, id);  // Keeps the first.
      longest_bytes_ = std::max(longest_bytes_, bytes.size());
    }
  }

  // The lowest id of a token that stands for these bytes, or kNoToken.
  TokenId Find(std::string_view bytes) const {
    if (bytes.size() > longest_bytes_) return kNoToken;
    const auto found = ids_.find(bytes);
    return found == ids_.end() ? kNoToken : found->second;
  }

 private:
  std::unordered_map<std::string_view, TokenId> ids_;
  std::size_t longest_bytes_ = 0;
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_PIECE_INDEX_H_
