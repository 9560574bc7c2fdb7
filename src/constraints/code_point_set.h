// Sets of Unicode characters, as ranges.
#ifndef KVASIR_CONSTRAINTS_CODE_POINT_SET_H_
#define KVASIR_CONSTRAINTS_CODE_POINT_SET_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::constraints {

inline constexpr std::uint32_t kLastCodePoint = 0x10FFFF;

struct CodePointRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;  // inclusive, >= first
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
  friend auto operator<=>(const CodePointRange&, const CodePointRange&) = default;
};

// A set of Unicode scalar values: surrogates are in none, so that every member has a UTF-8 form.
// A value. Invariant: ranges are ascending, and a gap lies between any two.
class CodePointSet {
 public:
  CodePointSet() = default;
  // Of ranges in any order, which may overlap. Requires first <= last <= kLastCodePoint.
  explicit CodePointSet(std::vector<CodePointRange> ranges);
  static CodePointSet Of(std::uint32_t code_point) { return Range(code_point, code_point); }
  static CodePointSet Range(std::uint32_t first, std::uint32_t last) {
    return CodePointSet({{first, last}});
  }
  static CodePointSet All() { return Range(0, kLastCodePoint); }

  bool empty() const { return ranges_.empty(); }
  bool Contains(std::uint32_t code_point) const;
  std::span<const CodePointRange> ranges() const { return ranges_; }

  CodePointSet Union(const CodePointSet& other) const;
  CodePointSet Intersect(const CodePointSet& other) const;
  CodePointSet Complement() const;
  CodePointSet Minus(const CodePointSet& other) const { return Intersect(other.Complement()); }

  friend bool operator==(const CodePointSet&, const CodePointSet&) = default;
  friend auto operator<=>(const CodePointSet&, const CodePointSet&) = default;

 private:
  std::vector<CodePointRange> ranges_;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_CODE_POINT_SET_H_
