// The UTF-8 bytes of sets of characters, as small automata over bytes.
#ifndef KVASIR_CONSTRAINTS_UTF8_AUTOMATON_H_
#define KVASIR_CONSTRAINTS_UTF8_AUTOMATON_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "constraints/code_point_set.h"

namespace kvasir::constraints {

// A place inside a character.
using ByteNode = std::uint32_t;
inline constexpr ByteNode kWholeCharacter = 0;  // All its bytes have been read.

struct ByteEdge {
  std::uint8_t first = 0;
  std::uint8_t last = 0;  // inclusive
  ByteNode next = kWholeCharacter;
  friend auto operator<=>(const ByteEdge&, const ByteEdge&) = default;
};

// Automata of many sets; equal ends of characters share their nodes. Single-threaded.
// Invariant: the edges of a node are disjoint and ascending, and from each node a whole
// character is at most 4 edges away.
class Utf8Automaton {
 public:
  Utf8Automaton() { nodes_.emplace_back(); }

  // The node where a character of this set, which must not be empty, begins.
  ByteNode Add(const CodePointSet& set);

  std::span<const ByteEdge> edges(ByteNode node) const { return nodes_[node]; }

 private:
  ByteNode Intern(std::vector<ByteEdge> edges);
  // All characters of these ranges, which have the same number of bytes and agree in all but the
  // last `bytes` of them.
  ByteNode AddSuffixes(std::span<const CodePointRange> ranges, int bytes);

  std::vector<std::vector<ByteEdge>> nodes_;  // [nodes]
  std::map<std::vector<ByteEdge>, ByteNode> interned_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_UTF8_AUTOMATON_H_
