// One sequence's part of the cache: a block table and a length.
#ifndef KVASIR_KVCACHE_SEQUENCE_H_
#define KVASIR_KVCACHE_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/kv_view.h"
#include "kernels/latent_view.h"
#include "kvcache/block_pool.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// Holds references to blocks of one pool, which must outlive it; move-only (a moved-from sequence
// is an empty one of the same pool); thread-compatible together with its pool and that pool's other
// sequences. One step of a model of n new positions is
//
//   KV_TRY(sequence.Reserve(n));
//   for each layer:
//     store K and V of positions length() … length() + n − 1 through View(layer), then attend
//   sequence.Advance(n);
//
// A step that fails does not Advance: nothing it stored is part of the sequence.
//
// Invariants:
//   1. length() <= slots held = blocks held · block_tokens.
//   2. Only blocks that hold a position below length() may be shared or kept, so every held block
//      wholly at or beyond length() is writable: its one reference is ours.
//   3. A shared or kept block is never written: Reserve copies it first, or has it given up.
//   4. Block addresses handed to views are those of the block table, in order.
class CachedSequence {
 public:
  explicit CachedSequence(BlockPool& pool) : pool_(&pool) {}
  ~CachedSequence() { Reset(); }
  CachedSequence(CachedSequence&& other) noexcept;
  CachedSequence& operator=(CachedSequence&& other) noexcept;
  CachedSequence(const CachedSequence&) = delete;
  CachedSequence& operator=(const CachedSequence&) = delete;

  const CacheGeometry& geometry() const { return pool_->geometry(); }
  // Positions stored.
  std::size_t length() const { return length_; }

  // Makes slots [length(), length() + count) writable, until the next Fork: takes the missing
  // blocks, and first copies the last, partly filled one if it is shared. One that is ours alone
  // but kept by an index is copied too, or, where the budget has no room for the copy, given up by
  // the index. kExhausted: nothing has changed, neither here nor in the pool's live blocks. Slots
  // already held are used, not taken again, so repeating the call costs nothing.
  [[nodiscard]] base::Result<void> Reserve(std::size_t count);
  // Takes count written positions into the sequence. Requires that they were reserved.
  void Advance(std::size_t count);

  // Drops positions new_length … and every block none of the others needs, reserved ones included.
  // Requires new_length <= length().
  void Truncate(std::size_t new_length);
  void Reset() { Truncate(0); }

  // A sequence of the same contents and length that shares every block with a position below
  // length(). Costs no block now; whichever of the two grows first copies the partly filled one.
  // Ends a reservation: Reserve again before storing.
  CachedSequence Fork();

  // For an empty sequence: takes positions [0, length) from these blocks, in order, which it then
  // shares with whoever holds or keeps them; length may end inside the last one. Costs no block and
  // cannot fail. Requires BlocksFor(length) blocks, live or idle, and that none are held.
  void Share(std::span<const BlockId> blocks, std::size_t length);
  // Puts another block, live or idle, in the place of a block table's entry. Requires that it holds
  // the same bits in all slots below length(), and that entry lies wholly below length().
  void ReplaceBlock(std::size_t entry, BlockId same_contents);

  // What attention of this layer walks and stores go through: positions below length(), and the
  // reserved ones. Valid until the next non-const call on this sequence. Constant time. Requires
  // layer < layers().
  kernels::KvView View(std::size_t layer) const;
  // The same of a latent cache. Which of the two is required, the geometry's kind says.
  kernels::LatentView Latents(std::size_t layer) const;

  // The block table: position t lies in entry t / block_tokens. Valid as long as a view.
  std::span<const BlockId> blocks() const { return blocks_; }

  // Bytes of the blocks held, shared or not: over all layers; of one layer.
  std::uint64_t held_bytes() const { return blocks_.size() * geometry().block_bytes(); }
  std::uint64_t held_bytes(std::size_t layer) const;
  // Of these, bytes of blocks that others hold too. Linear in the blocks held.
  std::uint64_t shared_bytes() const;
  // Of these, bytes of slots at or beyond length(): held but empty.
  std::uint64_t waste_bytes() const;

  // Aborts if an invariant does not hold. Linear in the blocks held.
  void CheckInvariants() const;

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  std::size_t slots() const { return blocks_.size() * geometry().block_tokens(); }
  // Whether the next position would land in a block held already that must not be written.
  bool NextSlotIsReadOnly() const;
  base::Result<void> AppendBlocks(std::uint64_t count);
  // Copies the filled part of the partly filled block, and takes `missing` blocks.
  base::Result<void> CopyAndAppend(std::uint64_t missing);
  void DropBlocks(std::size_t kept);

  BlockPool* pool_;
  std::size_t length_ = 0;
  std::vector<BlockId> blocks_;
  std::vector<std::byte*> addresses_;  // Of blocks_, for views.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_SEQUENCE_H_
