#include "constraints/unicode_class.h"

#include <utf8proc.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "constraints/han_character.h"

namespace kvasir::constraints {
namespace {

bool IsCategory(std::string_view name) {
  constexpr std::string_view kCategories =
      " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp "
      "C Cc Cf Co Cn ";
  return !name.empty() && name.find(' ') == std::string_view::npos &&
         kCategories.find(" " + std::string(name) + " ") != std::string_view::npos;
}

template <typename Has>
CodePointSet Collect(Has has) {
  std::vector<CodePointRange> ranges;
  for (std::uint32_t c = 0; c <= kLastCodePoint; ++c) {
    if (!has(c)) continue;
    if (ranges.empty() || ranges.back().last + 1 != c) ranges.push_back({c, c});
    ranges.back().last = c;
  }
  return CodePointSet(std::move(ranges));
}

}  // namespace

const CodePointSet* FindUnicodeClass(std::string_view name) {
  if (name != "Any" && name != "Han" && !IsCategory(name)) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, CodePointSet, std::less<>> known;
  const std::scoped_lock lock(mutex);
  auto place = known.find(name);
  if (place == known.end()) {
    CodePointSet set;
    if (name == "Any") {
      set = CodePointSet::All();
    } else if (name == "Han") {
      set = Collect([](std::uint32_t c) { return IsHan(c); });
    } else {
      set = Collect([&](std::uint32_t c) {
        return std::string_view(utf8proc_category_string(static_cast<utf8proc_int32_t>(c)))
            .starts_with(name);
      });
    }
    place = known.emplace(std::string(name), std::move(set)).first;
  }
  return &place->second;
}

}  // namespace kvasir::constraints
