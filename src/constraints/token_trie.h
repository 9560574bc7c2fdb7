// The bytes of a vocabulary's tokens as a tree: tokens with a common beginning are looked at once.
#ifndef KVASIR_CONSTRAINTS_TOKEN_TRIE_H_
#define KVASIR_CONSTRAINTS_TOKEN_TRIE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "base/token_mask.h"
#include "constraints/code_point_set.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// Immutable; thread-safe; keeps nothing of the vocabulary. Holds every normal, user-defined and
// byte token, of whatever length; tokens without bytes (control, unknown, unused) are in no mask
// that is made with it, whatever their names look like (Case C115).
class TokenTrie {
 public:
  struct Node {
    std::uint32_t end = 0;  // The node after all that begin with this one.
    std::uint32_t first_token =
        0;                    // Into tokens: those that end here come first, then those below.
    std::uint32_t depth = 0;  // 1 for a first byte
    std::uint8_t byte = 0;
    // What tokens have behind this byte is at most plain_characters_below() plain characters.
    bool plain_below = true;
  };
  // The nodes are in the order of a walk that visits a node before what begins with it; one more
  // stands at the end, so that tokens end where the next node's begin.
  struct Tree {
    std::vector<Node> nodes;
    std::vector<base::TokenId> tokens;

    std::uint32_t size() const { return static_cast<std::uint32_t>(nodes.size() - 1); }
    std::span<const base::TokenId> TokensAt(std::uint32_t node) const {
      return Tokens(nodes[node].first_token, nodes[node + 1].first_token);
    }
    std::span<const base::TokenId> TokensFrom(std::uint32_t node) const {
      return Tokens(nodes[node].first_token, nodes[nodes[node].end].first_token);
    }

   private:
    std::span<const base::TokenId> Tokens(std::uint32_t first, std::uint32_t last) const {
      return std::span(tokens).subspan(first, last - first);
    }
  };

  explicit TokenTrie(const tokenizer::Vocabulary& vocabulary);

  const Tree& all() const { return all_; }
  // Most tokens are whole plain characters, and inside a string it does not matter which: there
  // all such tokens are allowed at once, and only the others need a walk.
  static const CodePointSet& PlainCharacters();  // All but controls, " and \.
  // Tokens of at most so many characters, all of them plain.
  const base::TokenMask& plain(std::size_t characters) const {
    return plain_[std::min(characters, plain_characters())];
  }
  std::size_t plain_characters() const { return plain_.size() - 1; }  // Of the longest such token.
  std::size_t plain_characters_below() const { return plain_below_; }
  const Tree& others() const { return others_; }  // The rest.

  std::uint32_t max_depth() const { return max_depth_; }
  std::size_t vocab_size() const { return offsets_.size() - 1; }
  // The bytes of a token; none for those that are not in the tree.
  std::span<const std::uint8_t> Bytes(base::TokenId token) const {
    return std::span(bytes_).subspan(offsets_[token], offsets_[token + 1] - offsets_[token]);
  }

 private:
  Tree Build(std::vector<base::TokenId> tokens);

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> offsets_;  // [vocab + 1]
  std::uint32_t max_depth_ = 0;
  std::size_t plain_below_ = 0;
  std::vector<base::TokenMask> plain_;  // [plain_characters() + 1]
  Tree all_;
  Tree others_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TOKEN_TRIE_H_
