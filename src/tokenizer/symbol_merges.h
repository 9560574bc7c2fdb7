// The merging that all byte-pair encodings share: of all neighbours that may become one symbol, the
// best pair does, the leftmost of equals first, until none may.
#ifndef KVASIR_TOKENIZER_SYMBOL_MERGES_H_
#define KVASIR_TOKENIZER_SYMBOL_MERGES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include "base/token_id.h"

namespace kvasir::tokenizer {

inline constexpr base::TokenId kNoToken = std::numeric_limits<base::TokenId>::max();

// A stretch of the text on its way to be a token.
struct Symbol {
  std::size_t begin = 0;  // Byte offset in the text.
  std::size_t bytes = 0;  // 0 once it is part of a symbol to its left.
  base::TokenId id = kNoToken;
};

struct SymbolMerge {
  double priority;  // The greatest is merged first.
  base::TokenId id;
};

// Merges in place; what is left are the symbols with bytes > 0, in order. `find(left, right)` says
// what two neighbours become, if anything; it must depend on nothing but the two. Time n · log n
// and as many calls of find, for n symbols. Thread-safe if find is.
template <typename Find>
void MergeSymbols(std::vector<Symbol>& symbols, const Find& find) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Candidate {
    double priority;
    std::size_t left, right;  // Indices of neighbours, when it was found.
    std::size_t bytes;        // Of both then: neither can change without this or bytes == 0.
    base::TokenId id;
    bool operator<(const Candidate& other) const {
      return priority != other.priority ? priority < other.priority : left > other.left;
    }
  };
  std::vector<std::size_t> before(symbols.size()), after(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == symbols.size() ? kNone : i + 1;
  }
  std::vector<Candidate> found;
  const auto candidate = [&](std::size_t left, std::size_t right) -> std::optional<Candidate> {
    if (left == kNone || right == kNone) return std::nullopt;
    const std::optional<SymbolMerge> merge = find(symbols[left], symbols[right]);
    if (!merge) return std::nullopt;
    return Candidate{merge->priority, left, right, symbols[left].bytes + symbols[right].bytes,
                     merge->id};
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    if (const auto pair = candidate(i, i + 1)) found.push_back(*pair);
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(found));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    Symbol& right = symbols[best.right];
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != best.bytes) continue;
    left.bytes = best.bytes;
    left.id = best.id;
    right.bytes = 0;
    const std::size_t next = after[best.right];
    after[best.left] = next;
    if (next != kNone) before[next] = best.left;
    if (const auto pair = candidate(before[best.left], best.left)) queue.push(*pair);
    if (const auto pair = candidate(best.left, next)) queue.push(*pair);
  }
}

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_SYMBOL_MERGES_H_
