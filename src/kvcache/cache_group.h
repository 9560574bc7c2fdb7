// Cache groups: the layers and heads that keep the same positions, and so share one block table per
// sequence.
#ifndef KVASIR_KVCACHE_CACHE_GROUP_H_
#define KVASIR_KVCACHE_CACHE_GROUP_H_

#include <cstdint>
#include <optional>

#include "kvcache/cache_policy.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// Which positions of a sequence are kept: those that a query still to come may see. A function of
// the sequence's length alone.
struct Retention {
  std::uint64_t window = 0;  // A query sees so many last positions, its own included; 0: all.
  std::uint64_t sinks = 0;   // And so many first ones.
  // Not 0: only positions of the group of so many, aligned to absolute positions, that is not
  // complete yet (full-precision keys beside keys rounded by channel).
  std::uint32_t tail = 0;

  // The first position besides the sinks that a query at position `length` or later may see.
  std::uint64_t FirstNeeded(std::uint64_t length) const {
    if (tail != 0) return length / tail * tail;
    return window == 0 || length < window ? 0 : length - window + 1;
  }
  // Whether a sequence of this length needs its block `entry`: it holds a position that may still
  // be seen, or the next one will be stored in it.
  bool NeedsBlock(std::uint64_t entry, std::uint64_t length, std::uint64_t block_tokens) const {
    const std::uint64_t begin = entry * block_tokens;
    return begin < length && (begin < sinks || begin + block_tokens > FirstNeeded(length));
  }
  bool KeepsAll() const { return window == 0 && tail == 0; }

  friend bool operator==(const Retention&, const Retention&) = default;
};

// Neighbouring kv heads of a layer under one policy, and where their numbers lie in the blocks of
// their group. Offsets are bytes from the start of a block, multiples of 64.
struct CachePart {
  std::uint32_t layer = 0;
  std::uint32_t first_head = 0;
  std::uint32_t heads = 0;  // 0 in a latent cache, whose entry all heads share
  HeadPolicy policy = {};
  std::optional<CacheGroupId> group = std::nullopt;  // Null: nothing is stored.
  std::uint64_t block_bytes = 0;                     // Of each block of its group.
  // store=kv, for kernels::KvView:
  std::uint64_t k_offset = 0;        // [heads][block_tokens / 16] key tiles
  std::uint64_t v_offset = 0;        // [heads][block_tokens / 16] value tiles
  std::uint64_t k_scale_offset = 0;  // by channel: [heads][block_tokens / G][scales and minima]
  // Keys by channel: the group that holds those of the incomplete group of positions in f32.
  std::optional<CacheGroupId> tail_group = std::nullopt;
  std::uint64_t tail_offset = 0;       // [heads][block_tokens / 16] f32 key tiles
  std::uint64_t tail_block_bytes = 0;  // Of each block of that group.
  // store=hidden: f32 [block_tokens][hidden_dim]. Latent cache: [block_tokens][latent + rope].
  std::uint64_t row_offset = 0;

  // Where it begins in a block of its group.
  std::uint64_t FirstOffset() const {
    return heads == 0 || policy.store == KvStore::kHidden ? row_offset : k_offset;
  }

  friend bool operator==(const CachePart&, const CachePart&) = default;
};

// Blocks of a group hold block_tokens positions of its parts, and nothing of other groups: so a
// group whose policy drops positions frees its blocks while another keeps its own.
struct CacheGroup {
  Retention retention;
  std::uint64_t block_bytes = 0;

  // Whether its complete blocks go to a store: a tail has nothing that a text needs which ends at a
  // block boundary.
  bool IsStored() const { return retention.tail == 0; }

  friend bool operator==(const CacheGroup&, const CacheGroup&) = default;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_GROUP_H_
