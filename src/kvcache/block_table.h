// The block table of one cache group in one sequence.
#ifndef KVASIR_KVCACHE_BLOCK_TABLE_H_
#define KVASIR_KVCACHE_BLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kvcache/block_pool.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// Position t lies in entry t / block_tokens. An entry holds a reference to a block, or none where
// no query can see its positions any more. Move-only; thread-compatible together with its pool.
class BlockTable {
 public:
  BlockTable(BlockPool& pool, CacheGroupId group) : pool_(&pool), group_(group) {}
  ~BlockTable() { Shrink(0); }
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  CacheGroupId group() const { return group_; }
  std::size_t entries() const { return addresses_.size(); }
  bool holds(std::size_t entry) const { return addresses_[entry] != nullptr; }
  // By entry; meaningless where none is held.
  std::span<const BlockId> blocks() const { return blocks_; }
  // By entry, null where none is held: for views. Valid until the table changes.
  std::byte* const* addresses() const { return addresses_.data(); }
  std::uint64_t held_blocks() const { return held_; }
  std::uint64_t shared_blocks() const;  // Of these, that others hold too. Linear.

  // Takes so many fresh blocks at the end. All or nothing: kExhausted.
  base::Result<void> Append(std::uint64_t count);
  // Puts a copy of the block's first `slots` positions in its place. kExhausted: nothing changed.
  base::Result<void> CopyBlock(std::size_t entry, std::uint32_t slots);
  // Takes a reference to a live or idle block at the end, or an entry without one.
  void Share(std::optional<BlockId> block);
  // Puts another block, live or idle, in the place of a held one.
  void Replace(std::size_t entry, BlockId block);
  void Drop(std::size_t entry);                // A held one.
  void Shrink(std::size_t entries);            // Drops the entries from there on, the last first.
  BlockTable Fork(std::size_t entries) const;  // Shares the first so many entries.

  void CheckInvariants() const;  // Linear.

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  BlockPool* pool_;
  CacheGroupId group_;
  std::vector<BlockId> blocks_;
  std::vector<std::byte*> addresses_;
  std::uint64_t held_ = 0;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_TABLE_H_
