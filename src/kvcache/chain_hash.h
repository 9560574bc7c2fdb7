// The name of a block's contents: a hash chained over everything they are a function of.
#ifndef KVASIR_KVCACHE_CHAIN_HASH_H_
#define KVASIR_KVCACHE_CHAIN_HASH_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/token_id.h"

namespace kvasir::kvcache {

using base::TokenId;

// What a block's contents are a function of, besides tokens. Two caches that differ in any of these
// share no key.
struct FingerprintParts {
  base::Hash128 weights;           // Of all of the model's numbers.
  std::string_view configuration;  // How the model uses them.
  std::uint64_t contract = 0;      // Version of the numerics contract.
  std::string_view cache_setting;  // What the cache stores.
};
base::Hash128 Fingerprint(const FingerprintParts& parts);

// Where a chain of one tenant begins. Tenants share no key.
base::Hash128 RootHash(const base::Hash128& fingerprint, std::uint64_t tenant_salt);

// The name of the block that holds these tokens (at most kMaxBlockTokens) after the block, or the
// root, of this name. Little-endian, as every supported processor is. XXH3-128: fast, not secret,
// and not proof against an adversary, so whoever finds a block by it compares the tokens too.
base::Hash128 ChainHash(const base::Hash128& parent, std::span<const TokenId> tokens);

// A second chain over the same tokens, independent of the first: where what was written elsewhere
// cannot be compared token by token from the start, both would have to collide. Its root is {}.
base::Hash128 WitnessHash(const base::Hash128& parent, std::span<const TokenId> tokens);

using ChainHashFunction = base::Hash128 (*)(const base::Hash128&, std::span<const TokenId>);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CHAIN_HASH_H_
