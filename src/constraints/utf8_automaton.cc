#include "constraints/utf8_automaton.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvasir::constraints {
namespace {

// The characters of each length in bytes, and the fixed bits of the first byte (RFC 3629 §3).
struct Length {
  CodePointRange range;
  int bytes;
  std::uint8_t mark;
};
constexpr Length kLengths[] = {{{0x0, 0x7F}, 1, 0x00},
                               {{0x80, 0x7FF}, 2, 0xC0},
                               {{0x800, 0xFFFF}, 3, 0xE0},
                               {{0x10000, kLastCodePoint}, 4, 0xF0}};

// Adds an edge after the others, joined with the last one where they lead to the same place.
void AddEdge(ByteEdge edge, std::vector<ByteEdge>& edges) {
  if (!edges.empty() && edges.back().next == edge.next && edges.back().last + 1 == edge.first) {
    edges.back().last = edge.last;
  } else {
    edges.push_back(edge);
  }
}

// Walks the ranges by the value of their bits above `shift`: calls
// visit(first value, last value, parts) where parts are what these values hold of the ranges.
template <typename Visit>
void ForEachPrefix(std::span<const CodePointRange> ranges, int shift, Visit visit) {
  const std::uint32_t low = (std::uint32_t{1} << shift) - 1;
  std::vector<CodePointRange> parts;  // Of the value `current`.
  std::uint32_t current = 0;
  const auto flush = [&] {
    if (!parts.empty()) visit(current, current, parts);
    parts.clear();
  };
  for (CodePointRange range : ranges) {
    while (true) {
      const std::uint32_t value = range.first >> shift;
      if (value != current) flush();
      current = value;
      const std::uint32_t end = std::min(range.last, value << shift | low);
      const bool whole = (range.first & low) == 0 && end == (value << shift | low);
      if (whole && parts.empty()) {
        // As many whole values as there are, at once.
        const std::uint32_t last =
            (range.last & low) == low ? range.last >> shift : (range.last >> shift) - 1;
        const CodePointRange all[] = {{value << shift, value << shift | low}};
        visit(value, last, all);
        if (last == range.last >> shift) break;
        range.first = (last + 1) << shift;
        continue;
      }
      parts.push_back({range.first, end});
      if (end == range.last) break;
      range.first = end + 1;
    }
  }
  flush();
}

}  // namespace

ByteNode Utf8Automaton::Add(const CodePointSet& set) {
  KV_CHECK(!set.empty());
  std::vector<ByteEdge> edges;
  for (const Length& length : kLengths) {
    const CodePointSet part =
        set.Intersect(CodePointSet::Range(length.range.first, length.range.last));
    ForEachPrefix(
        part.ranges(), 6 * (length.bytes - 1),
        [&](std::uint32_t first, std::uint32_t last, std::span<const CodePointRange> parts) {
          AddEdge(
              {static_cast<std::uint8_t>(length.mark | first),
               static_cast<std::uint8_t>(length.mark | last), AddSuffixes(parts, length.bytes - 1)},
              edges);
        });
  }
  return Intern(std::move(edges));
}

ByteNode Utf8Automaton::AddSuffixes(std::span<const CodePointRange> ranges, int bytes) {
  if (bytes == 0) return kWholeCharacter;
  std::vector<ByteEdge> edges;
  ForEachPrefix(
      ranges, 6 * (bytes - 1),
      [&](std::uint32_t first, std::uint32_t last, std::span<const CodePointRange> parts) {
        AddEdge({static_cast<std::uint8_t>(0x80 | (first & 0x3F)),
                 static_cast<std::uint8_t>(0x80 | (last & 0x3F)), AddSuffixes(parts, bytes - 1)},
                edges);
      });
  return Intern(std::move(edges));
}

ByteNode Utf8Automaton::Intern(std::vector<ByteEdge> edges) {
  const auto [place, added] =
      interned_.emplace(std::move(edges), static_cast<ByteNode>(nodes_.size()));
  if (added) nodes_.push_back(place->first);
  return place->second;
}

}  // namespace kvasir::constraints
