// For tests: sees, and breaks, what pool, index, sequences and manager keep to themselves.
#ifndef KVASIR_KVCACHE_CACHE_TEST_PEER_H_
#define KVASIR_KVCACHE_CACHE_TEST_PEER_H_

#include <cstdint>

#include "kvcache/block_pool.h"
#include "kvcache/ids.h"
#include "kvcache/prefix_index.h"
#include "kvcache/sequence.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {

struct CacheTestPeer {
  static auto& blocks(BlockPool& pool) { return pool.blocks_; }
  static auto& free(BlockPool& pool) { return pool.free_; }
  static auto& vacant(BlockPool& pool) { return pool.vacant_; }
  static auto& stats(BlockPool& pool) { return pool.stats_; }
  static auto& keeper(BlockPool& pool) { return pool.keeper_; }
  static auto& length(CachedSequence& sequence) { return sequence.length_; }
  static auto& entries(CachedSequence& sequence) { return sequence.entries_; }
  static auto& blocks(CachedSequence& sequence) { return sequence.tables_[0].blocks_; }
  static auto& addresses(CachedSequence& sequence) { return sequence.tables_[0].addresses_; }
  static auto& held(CachedSequence& sequence) { return sequence.tables_[0].held_; }
  static auto& nodes(PrefixIndex& index) { return index.nodes_; }
  static auto& node(PrefixIndex& index, std::uint32_t id) { return *index.nodes_[id]; }
  static auto& node_of_block(PrefixIndex& index) { return index.node_of_block_; }
  static auto& by_hash(PrefixIndex& index) { return index.by_hash_; }
  static auto& siblings(PrefixIndex& index) { return index.siblings_; }
  static auto& evictable(PrefixIndex& index) { return index.evictable_; }
  static auto& loose(PrefixIndex& index) { return index.loose_; }
  static auto& unused(PrefixIndex& index) { return index.unused_; }
  static auto& stats(PrefixIndex& index) { return index.stats_; }
  static auto& entry(SequenceManager& manager, SequenceId id) {
    return *manager.entries_[id.index()];
  }
  static auto& pool(SequenceManager& manager) { return *manager.pool_; }
  static auto& index(SequenceManager& manager) { return *manager.index_; }
  static bool has_index(const SequenceManager& manager) { return manager.index_.has_value(); }
  static auto& unused(SequenceManager& manager) { return manager.unused_; }
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_TEST_PEER_H_
