#include "tokenizer/symbol_merges.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/philox.h"

namespace kvasir::tokenizer {
namespace {

// Which strings may be made, and how gladly.
using Table = std::map<std::string, double>;

std::vector<Symbol> Singles(const std::string& text) {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < text.size(); ++i) symbols.push_back({i, 1, kNoToken});
  return symbols;
}

std::vector<std::string> Merge(const std::string& text, const Table& table) {
  std::vector<Symbol> symbols = Singles(text);
  MergeSymbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const auto found = table.find(text.substr(left.begin, left.bytes + right.bytes));
    return found == table.end() ? std::nullopt : std::optional(SymbolMerge{found->second, 7});
  });
  std::vector<std::string> parts;
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes == 0) continue;
    parts.push_back(text.substr(symbol.begin, symbol.bytes));
    EXPECT_EQ(symbol.id, symbol.bytes == 1 ? kNoToken : 7u);
  }
  return parts;
}

// As it is defined: look at all pairs, merge the best, begin again.
std::vector<std::string> SlowMerge(const std::string& text, const Table& table) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    std::size_t best = parts.size();
    double priority = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = table.find(parts[i] + parts[i + 1]);
      if (found == table.end() || (best < parts.size() && found->second <= priority)) continue;
      best = i;
      priority = found->second;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(SymbolMerges, SmallCases) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(Merge("", {}), Parts{});
  EXPECT_EQ(Merge("abc", {}), (Parts{"a", "b", "c"}));
  EXPECT_EQ(Merge("abc", {{"ab", 1}, {"bc", 2}}), (Parts{"a", "bc"}));
  EXPECT_EQ(Merge("abc", {{"ab", 1}, {"bc", 1}}), (Parts{"ab", "c"}));  // The leftmost of equals.
  EXPECT_EQ(Merge("aaa", {{"aa", 1}}), (Parts{"aa", "a"}));
  EXPECT_EQ(Merge("aaaa", {{"aa", 1}, {"aaaa", 0}}), (Parts{"aaaa"}));
  EXPECT_EQ(Merge("abcd", {{"bc", 3}, {"abc", 2}, {"cd", 1}}), (Parts{"abc", "d"}));
}

TEST(SymbolMerges, RandomTablesAgreeWithTheSlowWay) {
  constexpr std::uint64_t kSeed = 20261130;
  for (std::uint32_t trial = 0; trial < 3000; ++trial) {
    const auto draw = [&](std::uint32_t i, std::uint32_t purpose) {
      return base::Philox4x32(kSeed, {trial, i, purpose, 0})[0];
    };
    const std::uint32_t letters = 1 + draw(0, 0) % 3;
    Table table;
    for (std::uint32_t i = 0; i < draw(0, 1) % 24; ++i) {
      std::string piece;
      for (std::uint32_t k = 0; k < 2 + draw(i, 2) % 4; ++k) {
        piece += static_cast<char>('a' + draw(i * 8 + k, 3) % letters);
      }
      table[piece] = draw(i, 4) % 6;  // Ties are common.
    }
    std::string text;
    for (std::uint32_t i = 0; i < draw(0, 5) % 40; ++i) {
      text += static_cast<char>('a' + draw(i, 6) % letters);
    }
    ASSERT_EQ(Merge(text, table), SlowMerge(text, table))
        << text << ", seed " << kSeed << ", trial " << trial;
  }
}

}  // namespace
}  // namespace kvasir::tokenizer
