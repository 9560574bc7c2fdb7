#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

// No character below this one composes with another, or is a mark that could be out of order.
constexpr std::uint32_t kFirstUnstable = 0x300;

// PropList.txt, White_Space; the property is stable.
bool IsWhiteSpace(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

using CodePoints = std::vector<utf8proc_int32_t>;

// utf8proc_decompose sorts marks by insertion, which is quadratic in a run of them; so this sorts.
CodePoints Decompose(std::string_view text) {
  CodePoints points;
  points.reserve(text.size());
  std::array<utf8proc_int32_t, 32> parts;
  while (!text.empty()) {
    const base::Utf8Step step = base::DecodeUtf8(text);
    int last_boundary = 0;
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(step.code_point), parts.data(), parts.size(),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE), &last_boundary);
    KV_CHECK(count > 0 && static_cast<std::size_t>(count) <= parts.size());
    points.insert(points.end(), parts.begin(), parts.begin() + count);
    text.remove_prefix(step.bytes);
  }
  return points;
}

void SortMarks(CodePoints& points) {
  const auto rank = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  const auto is_mark = [&](utf8proc_int32_t c) { return rank(c) != 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), is_mark);
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    std::stable_sort(begin, end, [&](auto a, auto b) { return rank(a) < rank(b); });
    begin = end;
  }
}

}  // namespace

CharacterClass ClassOf(std::uint32_t code_point) {
  if (IsWhiteSpace(code_point)) return CharacterClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::kNumber;
    default:
      return CharacterClass::kOther;
  }
}

std::string ToNfc(std::string_view text) {
  bool stable = true;
  for (std::size_t at = 0; at < text.size() && stable;) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    stable = step.code_point < kFirstUnstable;
    at += step.bytes;
  }
  if (stable) return std::string(text);
  CodePoints points = Decompose(text);
  SortMarks(points);
  const auto length =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  KV_CHECK(length >= 0);
  std::string composed;
  composed.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    base::AppendUtf8(static_cast<std::uint32_t>(points[static_cast<std::size_t>(i)]), composed);
  }
  return composed;
}

}  // namespace kvasir::tokenizer
