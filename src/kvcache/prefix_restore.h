// PrefixRestore: a sequence on its way to the blocks that a store has of its text.
#ifndef KVASIR_KVCACHE_PREFIX_RESTORE_H_
#define KVASIR_KVCACHE_PREFIX_RESTORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "kvcache/block_store.h"
#include "kvcache/ids.h"
#include "kvcache/sequence_manager.h"

namespace kvasir::kvcache {

// Asks which blocks the store has, then reads them in pieces of a bounded size, each asked for when
// the one before has been taken. Where every position is kept, each piece extends the sequence;
// where policies drop positions, it takes all blocks that its new length must hold, or none. The
// store's answers may fail to come at any point: the sequence then holds what it can, and the rest
// is computed. While it lasts, nobody else may change the sequence, but for preempting or finishing
// it, after which this must go too. Borrows the manager. Thread-compatible with it.
class PrefixRestore {
 public:
  // Most bytes of blocks read at once.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{32} << 20;

  // For a running sequence that holds what the index has of this text. Null if there is no store or
  // no index, or the text has no complete block more.
  static std::unique_ptr<PrefixRestore> Begin(SequenceManager& manager, SequenceId id,
                                              std::span<const base::TokenId> text,
                                              BlockStore* store);

  // Takes what has come and asks for more. Whether it is over; then it must not be used again.
  bool Poll();
  // Waits at most so long for what was asked for.
  void Wait(std::chrono::microseconds most) { read_->Wait(most); }

 private:
  static constexpr int kMostTries = 3;

  // A block asked for.
  struct Wanted {
    CacheGroupId group = CacheGroupId(0);
    std::size_t entry = 0;
  };

  PrefixRestore(SequenceManager& manager, SequenceId id, std::span<const base::TokenId> text,
                BlockStore& store);
  // Each says whether it is over.
  bool TakeProbe(const std::vector<StoredBlock>& blocks);
  bool TakeNext(const std::vector<StoredBlock>& blocks);
  bool BeginWhole(std::size_t blocks);
  bool TakePart(std::vector<StoredBlock> blocks);
  void AskPiece();
  std::shared_ptr<StoreRead> Ask(std::span<const Wanted> wanted, bool probe);

  SequenceManager& manager_;
  BlockStore& store_;
  const SequenceId id_;
  const std::vector<base::TokenId> text_;  // Complete blocks only.
  std::vector<BlockIdentity> blocks_;      // [blocks of the text]; the group is set when asked.
  std::size_t had_;                        // Positions held at the start.
  std::vector<Wanted> wanted_;             // All still to be read, in order.
  std::size_t taken_ = 0;                  // Of them.
  std::size_t asked_ = 0;                  // Of the current piece.
  std::vector<StoredBlock> parts_;         // Of a grouped cache, as they came.
  int tries_ = 0;                          // Lengths that it was asked for.
  std::size_t whole_ = 0;                  // Blocks of the length that a grouped cache restores.
  bool probing_ = true;
  std::shared_ptr<StoreRead> read_;
  std::chrono::steady_clock::time_point deadline_;
};

// Takes what a store has of this text into the index, where it stays until its room is needed;
// waits for the store. Returns the length found, of what the index had before too.
std::size_t ImportPrefix(SequenceManager& manager, std::uint64_t tenant_salt,
                         std::span<const base::TokenId> text, BlockStore& from);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_PREFIX_RESTORE_H_
