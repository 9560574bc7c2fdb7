// The bytes of a vocabulary's tokens as a tree: tokens with a common beginning are looked at once.
#ifndef KVASIR_CONSTRAINTS_TOKEN_TRIE_H_
#define KVASIR_CONSTRAINTS_TOKEN_TRIE_H_

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
    std::uint8_t byte = 0;
    std::uint32_t depth = 0;        // 1 for a first byte
    std::uint32_t end = 0;          // The node after all that begin with this one.
    std::uint32_t first_token = 0;  // Into tokens: those that end here are
    std::uint32_t last_token = 0;   // [first_token, last_token).
    std::uint32_t below = 0;        // All that begin with this one: [first_token, below).
    bool plain_below = true;        // What they have behind this byte is whole plain characters.
  };
  // The nodes are in the order of a walk that visits a node before what begins with it.
  struct Tree {
    std::vector<Node> nodes;
    std::vector<base::TokenId> tokens;
  };

  explicit TokenTrie(const tokenizer::Vocabulary& vocabulary);

  const Tree& all() const { return all_; }
  // Most tokens are whole plain characters, and inside a string every one of these leads to where
  // it came from: there all such tokens are allowed at once, and only the others need a walk.
  static const CodePointSet& PlainCharacters();            // All but controls, " and \.
  const base::TokenMask& plain() const { return plain_; }  // Tokens of plain characters only.
  const Tree& others() const { return others_; }           // The rest.

  std::uint32_t max_depth() const { return max_depth_; }
  std::size_t vocab_size() const { return plain_.size(); }
  // The bytes of a token; none for those that are not in the tree.
  std::span<const std::uint8_t> Bytes(base::TokenId token) const {
    return std::span(bytes_).subspan(offsets_[token], offsets_[token + 1] - offsets_[token]);
  }

 private:
  Tree Build(std::vector<base::TokenId> tokens);

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> offsets_;  // [vocab + 1]
  std::uint32_t max_depth_ = 0;
  base::TokenMask plain_;
  Tree all_;
  Tree others_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TOKEN_TRIE_H_
