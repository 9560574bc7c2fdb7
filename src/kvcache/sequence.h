// One sequence's part of the cache: a block table for every cache group, and a length.
#ifndef KVASIR_KVCACHE_SEQUENCE_H_
#define KVASIR_KVCACHE_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "kernels/kv_view.h"
#include "kernels/latent_view.h"
#include "kvcache/block_pool.h"
#include "kvcache/block_table.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// Holds references to blocks of one pool, which must outlive it; move-only (a moved-from sequence
// is an empty one of the same pool); thread-compatible together with its pool and that pool's other
// sequences. One step of a model of n new positions is
//
//   KV_TRY(sequence.Reserve(n));
//   for each layer:
//     store K and V of positions length() … length() + n − 1 through its views, then attend
//   sequence.Advance(n);
//
// A step that fails does not Advance: nothing it stored is part of the sequence.
//
// Invariants:
//   1. length() <= slots = entries of every table · block_tokens.
//   2. Every block that holds a position below length() that its group still needs is held. Blocks
//      that no query can see go at the next Reserve, or with DropUnseen.
//   3. Only blocks that hold a position below length() may be shared or kept, so every held block
//      wholly at or beyond length() is writable: its one reference is ours.
//   4. A shared or kept block is never written: Reserve copies it first, or has it given up.
//   5. Block addresses handed to views are those of the block tables, in order.
class CachedSequence {
 public:
  explicit CachedSequence(BlockPool& pool);
  ~CachedSequence() = default;
  CachedSequence(CachedSequence&& other) noexcept;
  CachedSequence& operator=(CachedSequence&& other) noexcept;
  CachedSequence(const CachedSequence&) = delete;
  CachedSequence& operator=(const CachedSequence&) = delete;

  const CacheGeometry& geometry() const { return pool_->geometry(); }
  // Positions stored.
  std::size_t length() const { return length_; }

  // Makes slots [length(), length() + count) writable, until the next Fork: drops what no query can
  // see, takes the missing blocks, and first copies each group's last, partly filled one if it is
  // shared. One that is ours alone but kept by an index is copied too, or, where the budget has no
  // room for the copy, given up by the index. kExhausted: nothing has changed but what was dropped,
  // neither here nor in the pool's live blocks. Slots already held are used, not taken again, so
  // repeating the call costs nothing.
  [[nodiscard]] base::Result<void> Reserve(std::size_t count);
  // For an empty sequence: makes the slots writable that a sequence of this length must hold, for a
  // caller that has them all, as from a file; then Advance(length). kExhausted: nothing has
  // changed.
  [[nodiscard]] base::Result<void> ReserveSeen(std::size_t length);
  // Takes count written positions into the sequence. Requires that they were reserved.
  void Advance(std::size_t count);
  // Where layers are computed again (store=none): the tokens of all positions. Who advances,
  // shares or restores such a sequence must tell them before its next step.
  std::span<const base::TokenId> history() const { return history_; }
  void ExtendHistory(std::span<const base::TokenId> tokens);
  // Gives up blocks that no query at or after length() can see.
  void DropUnseen();

  // Drops positions new_length … and every block none of the others needs, reserved ones included.
  // Where positions that later ones must see are gone (a window has passed them, or new_length lies
  // inside a block whose keys are rounded already), drops more, but no more than to the last block
  // boundary that all groups can end at. Returns the length left: the positions from there to
  // new_length must be computed again. Requires new_length <= length().
  std::size_t Truncate(std::size_t new_length);
  void Reset() { Truncate(0); }

  // A sequence of the same contents and length that shares every block with a position below
  // length(). Costs no block now; whichever of the two grows first copies the partly filled one.
  // Ends a reservation: Reserve again before storing.
  CachedSequence Fork();

  // For an empty sequence: takes positions [0, length) from these blocks, in order, which it then
  // shares with whoever holds or keeps them; length may end inside the last one. Costs no block and
  // cannot fail. blocks: [groups][BlocksFor(length)], live or idle, null where the group does not
  // need them at this length.
  void Share(std::span<const std::vector<std::optional<BlockId>>> blocks, std::size_t length);
  // Puts another block, live or idle, in the place of a block table's entry. Requires that it holds
  // the same bits in all slots below length(), and that entry lies wholly below length().
  void ReplaceBlock(CacheGroupId group, std::size_t entry, BlockId same_contents);

  // What attention of this part of a layer walks and stores go through: positions below length(),
  // and the reserved ones. Valid until the next non-const call on this sequence. Constant time.
  // Requires store=kv.
  kernels::KvView View(const CachePart& part) const;
  // Of a layer with one part.
  kernels::KvView View(std::size_t layer) const;
  // The row of a position of a part with store=hidden: f32 [hidden_dim].
  float* HiddenRow(const CachePart& part, std::size_t position) const;
  // A latent cache's entries. Which kind is required, the geometry says.
  kernels::LatentView Latents(std::size_t layer) const;

  const BlockTable& table(CacheGroupId group) const { return tables_[group.index()]; }
  std::span<const BlockTable> tables() const { return tables_; }
  // The first group's table: position t lies in entry t / block_tokens. Valid as long as a view.
  std::span<const BlockId> blocks() const {
    return tables_.empty() ? std::span<const BlockId>() : tables_[0].blocks();
  }
  // Blocks of every group that a position so far has needed.
  std::size_t entries() const { return entries_; }

  // Bytes of the blocks held, shared or not: over all layers; of one layer.
  std::uint64_t held_bytes() const;
  std::uint64_t held_bytes(std::size_t layer) const;
  // Of these, bytes of blocks that others hold too. Linear in the blocks held.
  std::uint64_t shared_bytes() const;
  // Of these, bytes of slots at or beyond length(): held but empty.
  std::uint64_t waste_bytes() const;

  // Aborts if an invariant does not hold. Linear in the blocks held.
  void CheckInvariants() const;

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  std::size_t slots() const { return entries_ * geometry().block_tokens(); }
  std::uint64_t BlockBytes(const BlockTable& table) const {
    return geometry().group(table.group()).block_bytes;
  }
  // Whether the next position would land in a block of the table that must not be written.
  bool NextSlotIsReadOnly(const BlockTable& table) const;
  // Whether every position that the group needs at this length is held.
  bool CanEndAt(const BlockTable& table, std::size_t length) const;
  base::Result<void> Grow(std::uint64_t missing);
  void Shrink(std::size_t entries);

  BlockPool* pool_;
  std::size_t length_ = 0;
  std::size_t entries_ = 0;             // Of every table.
  std::vector<base::TokenId> history_;  // Kept only where layers are replayed.
  std::vector<BlockTable> tables_;      // By group.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_SEQUENCE_H_
