#include "kvcache/chain_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {
namespace {

using Bits = std::pair<std::uint64_t, std::uint64_t>;

Bits Of(const base::Hash128& hash) { return {hash.low, hash.high}; }

TEST(ChainHashTest, EveryPartOfTheFingerprintCounts) {
  const FingerprintParts parts = {
      .weights = {1, 2}, .configuration = "gpt2", .contract = 1, .cache_setting = "full"};
  std::set<Bits> seen = {Of(Fingerprint(parts))};
  const auto differs = [&](auto&& change) {
    FingerprintParts other = parts;
    change(other);
    return seen.insert(Of(Fingerprint(other))).second;
  };
  EXPECT_FALSE(differs([](FingerprintParts&) {}));
  EXPECT_TRUE(differs([](FingerprintParts& p) { p.weights.low = 3; }));
  EXPECT_TRUE(differs([](FingerprintParts& p) { p.weights.high = 3; }));
  EXPECT_TRUE(differs([](FingerprintParts& p) { p.configuration = "gpt"; }));
  EXPECT_TRUE(differs([](FingerprintParts& p) { p.contract = 2; }));
  EXPECT_TRUE(differs([](FingerprintParts& p) { p.cache_setting = "2full"; }));
  // Where one text ends and the next begins counts too.
  EXPECT_TRUE(differs([](FingerprintParts& p) {
    p.configuration = "gpt2f";
    p.cache_setting = "ull";
  }));
}

TEST(ChainHashTest, TenantsAndFingerprintsShareNoRoot) {
  std::set<Bits> roots;
  for (std::uint64_t salt = 0; salt < 100; ++salt) {
    EXPECT_TRUE(roots.insert(Of(RootHash({5, 6}, salt))).second);
    EXPECT_TRUE(roots.insert(Of(RootHash({5, 7}, salt))).second);
  }
}

TEST(ChainHashTest, ParentTokensAndTheirNumberCount) {
  const std::vector<TokenId> tokens(kMaxBlockTokens, 0);
  std::set<Bits> seen;
  for (std::size_t count = 0; count <= tokens.size(); ++count) {
    EXPECT_TRUE(seen.insert(Of(ChainHash({0, 0}, std::span(tokens).first(count)))).second);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<TokenId> other = tokens;
    other[i] = 1;
    EXPECT_TRUE(seen.insert(Of(ChainHash({0, 0}, other))).second);
  }
  EXPECT_TRUE(seen.insert(Of(ChainHash({1, 0}, tokens))).second);
  EXPECT_TRUE(seen.insert(Of(ChainHash({0, 1}, tokens))).second);
}

// Keys are names in stores that outlive the program: a change of any must be meant.
TEST(ChainHashTest, KeysOfTheFirstVersion) {
  const base::Hash128 fingerprint = Fingerprint(
      {.weights = {1, 2}, .configuration = "gpt2", .contract = 1, .cache_setting = "full"});
  const base::Hash128 root = RootHash(fingerprint, 7);
  const std::vector<TokenId> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
  const base::Hash128 hash = ChainHash(root, tokens);
  EXPECT_EQ(hash.low, 12497408159888420574u);
  EXPECT_EQ(hash.high, 2132615475622038949u);
}

TEST(ChainHashDeathTest, ABlockIsNoLongerThanTheLongest) {
  const std::vector<TokenId> tokens(kMaxBlockTokens + 1, 0);
  EXPECT_DEATH(ChainHash({}, tokens), "kMaxBlockTokens");
}

}  // namespace
}  // namespace kvasir::kvcache
