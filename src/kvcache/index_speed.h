// What naming and finding blocks costs: the price of the prefix index, a token.
#ifndef KVASIR_KVCACHE_INDEX_SPEED_H_
#define KVASIR_KVCACHE_INDEX_SPEED_H_

#include <cstdint>

#include "base/result.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

struct IndexSpeedOptions {
  std::uint64_t block_tokens = kDefaultBlockTokens;
  std::uint64_t prompt_tokens = 512;  // Of each prompt; at least one block.
  std::uint64_t prompts = 64;         // Indexed at once, half of each prompt shared by all.
};

// Nanoseconds a token, the least of several rounds.
struct IndexSpeed {
  double hash_ns = 0;    // Chained hashes alone.
  double find_ns = 0;    // Finding a cached prompt: hashes, lookups, comparisons.
  double insert_ns = 0;  // Indexing a prompt's blocks.
};

// kUsage for a block size that is not allowed, a prompt below one block, or no prompt. Uses blocks
// of a few bytes a token, since contents are never looked at.
base::Result<IndexSpeed> MeasureIndexSpeed(const IndexSpeedOptions& options);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_INDEX_SPEED_H_
