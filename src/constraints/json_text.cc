#include "constraints/json_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::constraints {
namespace {

using NumberRanges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // inclusive

constexpr std::pair<char, std::uint32_t> kShortEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},
                                                            {'b', '\b'}, {'f', '\f'},  {'n', '\n'},
                                                            {'r', '\r'}, {'t', '\t'}};

CodePointSet HexDigit(std::uint32_t digit) {
  if (digit < 10) return CodePointSet::Of('0' + digit);
  return CodePointSet({{'A' + digit - 10, 'A' + digit - 10}, {'a' + digit - 10, 'a' + digit - 10}});
}

}  // namespace

TermId JsonSpeller::Character(const CodePointSet& set) {
  const auto known = characters_.find(set);
  if (known != characters_.end()) return known->second;
  const CodePointSet escaped_only({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  const TermId escapes = spelling_ == StringSpelling::kPlain
                             ? PlainEscapes(set.Intersect(escaped_only))
                             : Escapes(set);
  const TermId term = pool_.Alternate(pool_.Chars(set.Minus(escaped_only)),
                                      pool_.Concat(pool_.Chars(CodePointSet::Of('\\')), escapes));
  characters_.emplace(set, term);
  return term;
}

TermId JsonSpeller::PlainEscapes(const CodePointSet& set) {
  std::vector<TermId> choices;
  CodePointSet left = set;
  for (const auto& [letter, c] : kShortEscapes) {
    if (!left.Contains(c)) continue;
    choices.push_back(pool_.Chars(CodePointSet::Of(static_cast<std::uint8_t>(letter))));
    left = left.Minus(CodePointSet::Of(c));
  }
  for (const CodePointRange& range : left.ranges()) {
    for (std::uint32_t c = range.first; c <= range.last; ++c) {
      choices.push_back(pool_.Text(fmt::format("u{:04x}", c)));
    }
  }
  return pool_.Alternate(choices);
}

TermId JsonSpeller::Escapes(const CodePointSet& set) {
  std::vector<CodePointRange> letters;
  for (const auto& [letter, c] : kShortEscapes) {
    const auto code = static_cast<std::uint32_t>(letter);
    if (set.Contains(c)) letters.push_back({code, code});
  }
  std::vector<TermId> choices = {pool_.Chars(CodePointSet(std::move(letters)))};
  const TermId u = pool_.Chars(CodePointSet::Of('u'));
  const CodePointSet low_planes = set.Intersect(CodePointSet::Range(0, 0xFFFF));
  NumberRanges units;
  for (const CodePointRange& range : low_planes.ranges()) {
    units.push_back({range.first, range.last});
  }
  choices.push_back(pool_.Concat(u, Hex(units, 4)));
  // U+10000 + 1024·h + l is \u(D800 + h)\u(DC00 + l). Whole rows of 1024 go together.
  NumberRanges whole;
  const auto pair = [&](const NumberRanges& high, std::uint32_t first, std::uint32_t last) {
    const TermId parts[] = {u, Hex(high, 4), pool_.Text("\\u"),
                            Hex({{0xDC00 + first, 0xDC00 + last}}, 4)};
    choices.push_back(pool_.Concat(parts));
  };
  const CodePointSet high_planes = set.Intersect(CodePointSet::Range(0x10000, kLastCodePoint));
  for (const CodePointRange& range : high_planes.ranges()) {
    std::uint32_t c = range.first - 0x10000;
    const std::uint32_t last = range.last - 0x10000;
    while (c <= last) {
      const std::uint32_t row = c >> 10;
      if ((c & 0x3FF) == 0 && last - c >= 0x3FF) {
        const std::uint32_t rows = (last - c + 1) >> 10;
        whole.push_back({0xD800 + row, 0xD800 + row + rows - 1});
        c += rows << 10;
      } else {
        const std::uint32_t end = std::min(last, row << 10 | 0x3FF);
        pair({{0xD800 + row, 0xD800 + row}}, c & 0x3FF, end & 0x3FF);
        c = end + 1;
      }
    }
  }
  if (!whole.empty()) pair(whole, 0, 0x3FF);
  return pool_.Alternate(choices);
}

TermId JsonSpeller::Hex(const NumberRanges& ranges, int digits) {
  if (ranges.empty()) return kNothingTerm;
  if (digits == 0) return kEmptyTerm;
  const auto known = hex_.find({ranges, digits});
  if (known != hex_.end()) return known->second;
  const int shift = 4 * (digits - 1);
  const std::uint32_t unit = std::uint32_t{1} << shift;
  std::map<TermId, CodePointSet> by_rest;  // Digits with the same rests together.
  for (std::uint32_t digit = 0; digit < 16; ++digit) {
    NumberRanges rests;
    for (const auto& [first, last] : ranges) {
      const std::uint32_t from = std::max(first, digit * unit);
      const std::uint32_t to = std::min(last, (digit + 1) * unit - 1);
      if (from <= to) rests.push_back({from - digit * unit, to - digit * unit});
    }
    const TermId rest = Hex(rests, digits - 1);
    if (rest != kNothingTerm) by_rest[rest] = by_rest[rest].Union(HexDigit(digit));
  }
  std::vector<TermId> choices;
  for (const auto& [rest, set] : by_rest) choices.push_back(pool_.Concat(pool_.Chars(set), rest));
  return hex_[{ranges, digits}] = pool_.Alternate(choices);
}

JsonSpeller::Moves JsonSpeller::MovesOf(const CharDfa::State& state) {
  std::map<std::uint32_t, std::vector<CodePointRange>> by_next;
  for (const CharDfa::Edge& edge : state.edges) by_next[edge.next].push_back(edge.range);
  Moves moves;
  for (auto& [next, ranges] : by_next) {
    moves.push_back({Character(CodePointSet(std::move(ranges))), next});
  }
  return moves;
}

TermId JsonStringTerms::Expand(TermPool& pool, std::uint32_t state) {
  std::vector<TermId> choices;
  if (dfa_->states[state].label != 0) choices.push_back(pool.Text("\""));
  for (const auto& [character, next] : speller_->MovesOf(dfa_->states[state])) {
    choices.push_back(pool.Concat(character, pool.Lazy(source_, next)));
  }
  return pool.Alternate(choices);
}

}  // namespace kvasir::constraints
