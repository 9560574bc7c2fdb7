#include "kvcache/chain_hash.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {
namespace {

base::Hash128 HashWords(std::span<const std::uint64_t> words) {
  return base::HashBytes128(std::as_bytes(words));
}

base::Hash128 HashLink(const base::Hash128& parent, std::span<const TokenId> tokens,
                       std::uint64_t seed) {
  KV_CHECK(tokens.size() <= kMaxBlockTokens);
  std::array<std::byte, sizeof(parent) + kMaxBlockTokens * sizeof(TokenId)> buffer;
  std::memcpy(buffer.data(), &parent, sizeof(parent));
  std::memcpy(buffer.data() + sizeof(parent), tokens.data(), tokens.size_bytes());
  return base::HashBytes128(std::span(buffer).first(sizeof(parent) + tokens.size_bytes()), seed);
}

}  // namespace

base::Hash128 Fingerprint(const FingerprintParts& parts) {
  const auto text = [](std::string_view s) {
    return base::HashBytes128(std::as_bytes(std::span(s.data(), s.size())));
  };
  const base::Hash128 configuration = text(parts.configuration);
  const base::Hash128 setting = text(parts.cache_setting);
  return HashWords(std::array{parts.weights.low, parts.weights.high, configuration.low,
                              configuration.high, parts.contract, setting.low, setting.high});
}

base::Hash128 RootHash(const base::Hash128& fingerprint, std::uint64_t tenant_salt) {
  return HashWords(std::array{fingerprint.low, fingerprint.high, tenant_salt});
}

base::Hash128 ChainHash(const base::Hash128& parent, std::span<const TokenId> tokens) {
  return HashLink(parent, tokens, 0);
}

base::Hash128 WitnessHash(const base::Hash128& parent, std::span<const TokenId> tokens) {
  return HashLink(parent, tokens, 0x9e3779b97f4a7c15);
}

}  // namespace kvasir::kvcache
