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
  // Most bytes of block storage the pool ever takes; at least one block of every group.
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
  std::uint64_t budget_bytes = 0;
  std::uint64_t capacity_blocks = 0;  // Of every group at once, that the budget holds.
  std::uint64_t live_blocks = 0;      // Referenced at least once.
  std::uint64_t shared_blocks = 0;    // Referenced at least twice; part of live.
  std::uint64_t references = 0;       // Of all live blocks together.
  std::uint64_t idle_blocks = 0;      // Not referenced, contents kept: cached and free.
  std::uint64_t free_blocks = 0;      // Storage held, neither live nor idle: the next handed out.
  // The same in bytes; blocks of different groups have different sizes.
  std::uint64_t live_bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t referenced_bytes = 0;  // The sum of what the holders of references count as held.
  std::uint64_t idle_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t peak_live_bytes = 0;  // Highest live_bytes so far.

  // What sharing saves.
  std::uint64_t saved_bytes() const { return referenced_bytes - live_bytes; }
  std::uint64_t storage_bytes() const { return live_bytes + idle_bytes + free_bytes; }
  // What live blocks may still grow by: everything else can be given up.
  std::uint64_t available_bytes() const { return budget_bytes - live_bytes; }

  friend bool operator==(const BlockPoolStats&, const BlockPoolStats&) = default;
};

// Owner: the engine or whoever makes it; must outlive every holder of a reference (checked by the
// destructor). Neither copied nor moved, since sequences point to it. Thread-compatible: the pool
// and all its sequences are changed by one thread at a time; the bytes of live blocks may meanwhile
// be used by many.
//
// Blocks of each cache group have their own size; one budget in bytes serves them all. Storage is
// taken from memory one block at a time, when no block of the group is free, and kept for reuse;
// nothing is reserved ahead. The block freed last, whose bytes are the likeliest to be in a
// processor cache, is handed out first. A kept block that loses its last reference becomes idle:
// its contents stay until the storage is needed. Where the budget is used up, free blocks of other
// groups give their storage back first; when none is left, the keeper gives idle ones up. Under
// AddressSanitizer the bytes of a block that is not live are poisoned.
//
// Invariants:
//   1. A block that is live, idle or free has storage, 64-byte aligned, that never moves; ids of
//      blocks that gave theirs back stand for nothing until they are made again.
//   2. A block is on its group's free list, once, exactly if it has storage, no reference, and is
//      not kept.
//   3. Bytes of storage <= budget_bytes.
//   4. The running counts of blocks, references and bytes equal a recount.
//   5. A block is kept only while there is a keeper.
class BlockPool {
 public:
  // kUsage if the budget does not hold one block of every group. Allocates no block.
  static base::Result<std::unique_ptr<BlockPool>> Make(const CacheGeometry& geometry,
                                                       const BlockPoolOptions& options);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  const CacheGeometry& geometry() const { return geometry_; }

  // A block of the group with one reference and unspecified contents. kExhausted if the budget is
  // used up, or the machine has no memory left; live blocks are then unchanged.
  base::Result<BlockId> Allocate(CacheGroupId group = CacheGroupId(0));
  // kExhausted, naming what is wanted and what there is, if the budget does not hold so much more.
  base::Result<void> CheckAvailable(std::uint64_t wanted_bytes) const;

  // Requires a live block, or an idle one, which becomes live.
  void AddRef(BlockId id);
  // Each requires a live block.
  void Release(BlockId id);  // The last one frees the block, or makes it idle if it is kept.
  std::byte* data(BlockId id) const;
  // Each requires a block with storage.
  CacheGroupId group(BlockId id) const { return blocks_[id.index()].group; }
  bool live(BlockId id) const { return blocks_[id.index()].references > 0; }
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
    std::byte* data;  // Null: no storage.
    CacheGroupId group;
    std::uint32_t references;
    bool kept;
  };

  BlockPool(const CacheGeometry& geometry, const BlockPoolOptions& options);
  std::uint64_t BytesOf(const Block& block) const {
    return geometry_.group(block.group).block_bytes;
  }
  // Adds one free block of the group; false if the budget or memory has no room.
  bool Grow(CacheGroupId group);
  // Gives the storage of one free block of another group back; false if there is none.
  bool TrimOther(CacheGroupId group);
  BlockId TakeFree(CacheGroupId group);
  void CountLive(const Block& block);
  Block& LiveBlock(BlockId id);
  const Block& LiveBlock(BlockId id) const;

  const CacheGeometry geometry_;
  const std::optional<std::uint64_t> placement_seed_;
  BlockMemory& memory_;
  std::vector<Block> blocks_;               // By id.
  std::vector<std::vector<BlockId>> free_;  // [groups]: last in, first out
  std::vector<BlockId> vacant_;             // Ids without storage.
  BlockKeeper* keeper_ = nullptr;
  BlockPoolStats stats_;
  std::uint64_t draws_ = 0;  // Of the placement generator.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_POOL_H_
