// Physical blocks with reference counts, under a hard byte budget.
#ifndef KVASIR_KVCACHE_BLOCK_POOL_H_
#define KVASIR_KVCACHE_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "kvcache/block_memory.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

struct BlockPoolOptions {
  // Most bytes of block storage the pool ever takes; at least one block. Rounded down to blocks.
  std::uint64_t budget_bytes = 0;
  // For tests and `verify`: hands blocks out in a pseudo-random order that this seed fixes, each
  // filled with NaN. An answer that depends on where blocks lie, or on what an unwritten slot
  // holds, changes under it. Storage then grows a few blocks ahead, within the budget.
  std::optional<std::uint64_t> placement_seed = std::nullopt;
  // Not owned; must outlive the pool. Null: BlockMemory::System().
  BlockMemory* memory = nullptr;
};

// Keeps the contents of blocks that nobody references, so that they can be found again; the prefix
// index is one. Called by its pool, under the pool's threading rule.
class BlockKeeper {
 public:
  virtual ~BlockKeeper() = default;
  // The last reference to a kept block went; or the first came.
  virtual void OnIdle(BlockId id) = 0;
  virtual void OnLive(BlockId id) = 0;
  // Must StopKeeping at least one idle block. Called only if there is one.
  virtual void GiveUpIdle() = 0;
  // Must StopKeeping this kept block, which has one reference and is about to be written.
  virtual void GiveUp(BlockId id) = 0;
};

// A snapshot. Every number can be recomputed from the reference counts (CheckInvariants does).
struct BlockPoolStats {
  std::uint64_t block_bytes = 0;
  std::uint64_t capacity_blocks = 0;   // What the budget allows.
  std::uint64_t live_blocks = 0;       // Referenced at least once.
  std::uint64_t shared_blocks = 0;     // Referenced at least twice; part of live.
  std::uint64_t references = 0;        // Of all live blocks together.
  std::uint64_t idle_blocks = 0;       // Not referenced, contents kept: cached and free.
  std::uint64_t free_blocks = 0;       // Storage held, neither live nor idle: the next handed out.
  std::uint64_t peak_live_blocks = 0;  // Highest live_blocks so far.

  std::uint64_t live_bytes() const { return live_blocks * block_bytes; }
  std::uint64_t shared_bytes() const { return shared_blocks * block_bytes; }
  std::uint64_t idle_bytes() const { return idle_blocks * block_bytes; }
  // What the holders of references count together: the sum of their held bytes.
  std::uint64_t referenced_bytes() const { return references * block_bytes; }
  // What sharing saves: referenced_bytes() − saved_bytes() = live_bytes().
  std::uint64_t saved_bytes() const { return (references - live_blocks) * block_bytes; }
  std::uint64_t storage_bytes() const {
    return (live_blocks + idle_blocks + free_blocks) * block_bytes;
  }
};

// Owner: the engine or whoever makes it; must outlive every holder of a reference (checked by the
// destructor). Neither copied nor moved, since sequences point to it. Thread-compatible: the pool
// and all its sequences are changed by one thread at a time; the bytes of live blocks may meanwhile
// be used by many.
//
// Storage is taken from memory one block at a time, when no free block is left, and kept for reuse
// until the pool goes; nothing is reserved ahead. The block freed last, whose bytes are the
// likeliest to be in a processor cache, is handed out first. A kept block that loses its last
// reference becomes idle: its contents stay until the storage is needed, that is when no block is
// free and no more may be made; then the keeper gives one up. Under AddressSanitizer the bytes of a
// block that is not live are poisoned.
//
// Invariants:
//   1. Ids are 0 … blocks ever made − 1; each has storage, 64-byte aligned, that never moves.
//   2. A block is on the free list, once, exactly if it has no reference and is not kept.
//   3. Blocks ever made · block_bytes <= budget_bytes.
//   4. The running counts of live, shared and idle blocks and of references equal a recount.
//   5. A block is kept only while there is a keeper.
class BlockPool {
 public:
  // kUsage if the budget does not hold one block. Allocates no block.
  static base::Result<std::unique_ptr<BlockPool>> Make(const CacheGeometry& geometry,
                                                       const BlockPoolOptions& options);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  const CacheGeometry& geometry() const { return geometry_; }

  // A block with one reference and unspecified contents. kExhausted if the budget is used up, or
  // the machine has no memory left; the pool is then unchanged.
  base::Result<BlockId> Allocate();
  // kExhausted, naming what is wanted and what there is, if the budget does not hold so many more.
  base::Result<void> CheckAvailable(std::uint64_t wanted_blocks) const;

  // Requires a live block, or an idle one, which becomes live.
  void AddRef(BlockId id);
  // Each requires a live block.
  void Release(BlockId id);  // The last one frees the block, or makes it idle if it is kept.
  std::byte* data(BlockId id) const;
  std::uint32_t references(BlockId id) const;
  bool kept(BlockId id) const;
  // Whether its contents may change: one reference, and no keeper counts on them.
  bool IsWritable(BlockId id) const { return references(id) == 1 && !kept(id); }
  // Asks the keeper to give the block up. Requires one reference, and that it is kept.
  void MakeWritable(BlockId id);

  // At most one keeper, which sets itself, must outlive its kept blocks and then sets null.
  void SetKeeper(BlockKeeper* keeper);
  // For the keeper. Keep requires a live block that is not kept; StopKeeping a kept one, which if
  // idle becomes free.
  void Keep(BlockId id);
  void StopKeeping(BlockId id);

  BlockPoolStats stats() const;
  // Aborts if an invariant does not hold. Linear in the number of blocks.
  void CheckInvariants() const;

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  struct Block {
    std::byte* data;
    std::uint32_t references;
    bool kept;
  };

  BlockPool(const CacheGeometry& geometry, const BlockPoolOptions& options);
  bool Grow();
  std::uint64_t LiveBlocks() const { return blocks_.size() - free_.size() - idle_blocks_; }
  BlockId TakeFree();
  Block& LiveBlock(BlockId id);
  const Block& LiveBlock(BlockId id) const;

  const CacheGeometry geometry_;
  const std::uint64_t capacity_blocks_;
  const std::optional<std::uint64_t> placement_seed_;
  BlockMemory& memory_;
  std::vector<Block> blocks_;  // By id.
  std::vector<BlockId> free_;  // Last in, first out.
  BlockKeeper* keeper_ = nullptr;
  std::uint64_t shared_blocks_ = 0;
  std::uint64_t idle_blocks_ = 0;
  std::uint64_t references_ = 0;
  std::uint64_t peak_live_blocks_ = 0;
  std::uint64_t draws_ = 0;  // Of the placement generator.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_POOL_H_
