#include "constraints/code_point_set.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::constraints {
namespace {

constexpr std::uint32_t kFirstSurrogate = 0xD800;
constexpr std::uint32_t kLastSurrogate = 0xDFFF;

// Appends the range without its surrogates, joining it with the last one where they touch.
void Append(CodePointRange range, std::vector<CodePointRange>& ranges) {
  if (range.first < kFirstSurrogate && range.last >= kFirstSurrogate) {
    Append({range.first, kFirstSurrogate - 1}, ranges);
    range.first = kFirstSurrogate;
  }
  if (range.first >= kFirstSurrogate && range.first <= kLastSurrogate) {
    if (range.last <= kLastSurrogate) return;
    range.first = kLastSurrogate + 1;
  }
  if (!ranges.empty() && range.first <= ranges.back().last + 1) {
    ranges.back().last = std::max(ranges.back().last, range.last);
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (const CodePointRange& range : ranges) {
    KV_CHECK(range.first <= range.last && range.last <= kLastCodePoint);
    Append(range, ranges_);
  }
}

bool CodePointSet::Contains(std::uint32_t code_point) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](std::uint32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges_.begin() && code_point <= (after - 1)->last;
}

CodePointSet CodePointSet::Union(const CodePointSet& other) const {
  std::vector<CodePointRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(all));
}

CodePointSet CodePointSet::Intersect(const CodePointSet& other) const {
  CodePointSet both;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const std::uint32_t first = std::max(a->first, b->first);
    const std::uint32_t last = std::min(a->last, b->last);
    if (first <= last) both.ranges_.push_back({first, last});
    a->last < b->last ? ++a : ++b;
  }
  return both;
}

CodePointSet CodePointSet::Complement() const {
  CodePointSet rest;
  std::uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (next < range.first) Append({next, range.first - 1}, rest.ranges_);
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) Append({next, kLastCodePoint}, rest.ranges_);
  return rest;
}

}  // namespace kvasir::constraints
