#include "eval/copied_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>

#include "base/character_count.h"
#include "base/check.h"

namespace kvasir::eval {
namespace {

constexpr std::uint64_t kLeastCharacters = 12;
constexpr std::string_view kBlanks = " \t\r";

using Prefix = std::uint64_t;  // The first 8 bytes of a line.

Prefix PrefixAt(const char* at) {
  Prefix prefix = 0;
  std::memcpy(&prefix, at, sizeof(prefix));
  return prefix;
}

// Bits of a small table, so that most places of the corpus need no look-up in the map.
constexpr std::size_t kFilterBits = 1 << 20;
std::size_t FilterIndex(Prefix prefix) {
  return static_cast<std::size_t>((prefix * 0x9E3779B97F4A7C15u) >> 44) % kFilterBits;
}

}  // namespace

std::vector<std::string_view> TellingLines(std::string_view text, bool whole) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && !whole) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (base::CountCharacters(line) >= kLeastCharacters) lines.push_back(line);
  }
  return lines;
}

CopiedLines CountCopied(std::string_view corpus, std::span<const std::string_view> lines) {
  CopiedLines result;
  result.lines = lines.size();
  std::unordered_map<Prefix, std::vector<std::string_view>> sought;
  std::vector<bool> filter(kFilterBits);
  for (const std::string_view line : lines) {
    KV_CHECK(line.size() >= sizeof(Prefix));
    const Prefix prefix = PrefixAt(line.data());
    sought[prefix].push_back(line);
    filter[FilterIndex(prefix)] = true;
  }
  for (std::size_t at = 0; at + sizeof(Prefix) <= corpus.size() && !sought.empty(); ++at) {
    const Prefix prefix = PrefixAt(corpus.data() + at);
    if (!filter[FilterIndex(prefix)]) continue;
    const auto candidates = sought.find(prefix);
    if (candidates == sought.end()) continue;
    const std::string_view rest = corpus.substr(at);
    result.copied += std::erase_if(candidates->second,
                                   [&](std::string_view line) { return rest.starts_with(line); });
    if (candidates->second.empty()) sought.erase(candidates);
  }
  return result;
}

}  // namespace kvasir::eval
