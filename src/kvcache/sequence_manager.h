// Many sequences in one budget: what an engine needs of the cache, without its scheduler.
#ifndef KVASIR_KVCACHE_SEQUENCE_MANAGER_H_
#define KVASIR_KVCACHE_SEQUENCE_MANAGER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "base/token_id.h"
#include "kvcache/block_pool.h"
#include "kvcache/block_store.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/ids.h"
#include "kvcache/prefix_index.h"
#include "kvcache/prompt_log_probs.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {

struct SequenceManagerOptions {
  BlockPoolOptions pool = {};  // The budget is that of all groups.
  bool prefix_index = true;    // Off: no block outlives its sequences, and nothing is found.
  PrefixIndexOptions index = {};
  // Longest prefix indexed. Where every group forgets old positions, this bounds what a text
  // without end leaves in the index.
  std::uint64_t max_indexed_tokens = std::numeric_limits<std::uint64_t>::max();
  // Where preempted sequences may be written: a directory of this process alone, which exists. Null
  // or empty: nowhere.
  base::Env* swap_env = nullptr;  // Not owned.
  std::string swap_directory = {};
  // Where indexed blocks are written, and asked for by PrefixRestore. Null: nowhere. Needs the
  // index.
  BlockStore* store = nullptr;  // Not owned.
};

enum class Preemption {
  kDrop,  // Keep the tokens only: what the index has lost by then is computed again.
  kSwap,  // Write the blocks to a file too.
};

// Bytes are bytes held.
struct SequenceReport {
  std::size_t length = 0;   // Positions cached.
  std::size_t pending = 0;  // Positions to be computed again.
  bool preempted = false;
  std::uint64_t held_bytes = 0;     // Blocks of its table, shared or not.
  std::uint64_t shared_bytes = 0;   // Of these, in blocks that others hold too.
  std::uint64_t waste_bytes = 0;    // Of these, held but empty.
  std::uint64_t swapped_bytes = 0;  // In its swap file.
};

struct ManagerReport {
  BlockPoolStats pool;  // Live, shared, cached-and-free (idle), free: they add up.
  PrefixIndexStats index;
  std::uint64_t running = 0;  // Sequences.
  std::uint64_t preempted = 0;
  std::uint64_t waste_bytes = 0;    // Empty slots of live blocks, each block once.
  std::uint64_t swapped_bytes = 0;  // In files now.
  // Since the start:
  std::uint64_t hit_tokens = 0;         // Positions taken from the index,
  std::uint64_t restored_tokens = 0;    // and from the store.
  std::uint64_t dropped = 0;            // Preemptions that kept no blocks,
  std::uint64_t swapped = 0;            // and that wrote a file.
  std::uint64_t swap_in_tokens = 0;     // Positions read back.
  std::uint64_t swap_write_faults = 0;  // Files that could not be written: dropped instead.
  std::uint64_t swap_read_faults = 0;   // Files not believed: computed again instead.

  // Of the bytes of live blocks; 0 if there are none.
  double WasteShare() const {
    const std::uint64_t live = pool.live_bytes;
    return live == 0 ? 0.0 : static_cast<double>(waste_bytes) / static_cast<double>(live);
  }
};

// Owns the pool, the index and all sequences; neither copied nor moved. Thread-compatible: one
// thread at a time; the bytes of blocks may meanwhile be used by many. It never decides who runs:
// the caller creates, grows, preempts and resumes; out of blocks is an ordinary result.
//
// A step of a sequence is: on its cache Reserve (kExhausted: preempt somebody), store and Advance
// (as Model::Forward does), then Commit of the tokens. Commit makes complete blocks findable, and
// where an equal block is indexed already, puts that one in the place of the new.
//
// Invariants:
//   1. A sequence knows the token of every position it has cached, and of every pending one.
//   2. Its complete blocks are indexed under exactly those tokens, as far as no hash collided and
//      max_indexed_tokens allows: its path names their nodes, and pins the last of them.
//   3. A preempted sequence holds no block.
//   4. The references of the pool are those of the sequences' tables.
//   5. Log-probabilities of positions in indexed blocks are with the index, others here.
class SequenceManager {
 public:
  // kUsage if the budget does not hold one block of every group. Takes no block.
  static base::Result<std::unique_ptr<SequenceManager>> Make(const CacheGeometry& geometry,
                                                             const SequenceManagerOptions& options);
  ~SequenceManager();
  SequenceManager(const SequenceManager&) = delete;
  SequenceManager& operator=(const SequenceManager&) = delete;

  const CacheGeometry& geometry() const { return pool_->geometry(); }

  // A running, empty sequence. Tenants (salts) share no block.
  SequenceId Create(std::uint64_t tenant_salt = 0);
  // For a running sequence without blocks: takes the longest cached prefix of these tokens, which
  // must begin as its pending ones do, and returns its length. Costs no block, cannot fail.
  std::size_t TakePrefix(SequenceId id, std::span<const TokenId> tokens);
  // The name of the first block that a sequence has still to complete on its way to this text,
  // which begins with its tokens; null if it completes none, or if nothing is indexed. Two
  // sequences of one name are about to compute the same block.
  std::optional<base::Hash128> NextBlockName(SequenceId id, std::span<const TokenId> text) const;

  // A running sequence's blocks, to Reserve, View and Advance; nothing else. Valid until Finish.
  CachedSequence& cache(SequenceId id);
  const CachedSequence& cache(SequenceId id) const { return At(id).cache; }
  // Tells the tokens of the positions by which the cache advanced since the last Commit. Blocks
  // that no query sees any more go, once they are indexed.
  void Commit(SequenceId id, std::span<const TokenId> tokens);
  // The same for positions that came from the store, to which they are not written again.
  void CommitRestored(SequenceId id, std::span<const TokenId> tokens);

  BlockStore* store() const { return index_ ? options_.store : nullptr; }
  std::uint64_t max_indexed_tokens() const { return options_.max_indexed_tokens; }
  bool has_index() const { return index_.has_value(); }
  // What the complete blocks of this text are in a store, for this tenant: of group 0, without
  // bytes.
  std::vector<BlockIdentity> IdentitiesOf(std::uint64_t tenant_salt,
                                          std::span<const TokenId> text) const;
  std::uint64_t restored_tokens() const { return counts_.restored_tokens; }
  std::uint64_t tenant_of(SequenceId id) const { return At(id).tenant_salt; }
  // Puts into a store what a sequence of the longest cached prefix of this text, in complete
  // blocks, must hold; returns its length.
  std::size_t Export(std::uint64_t tenant_salt, std::span<const TokenId> text, BlockStore& to);

  // Of a running sequence: all tokens known; the last of them that must be computed again.
  std::span<const TokenId> tokens(SequenceId id) const { return At(id).tokens; }
  std::span<const TokenId> pending(SequenceId id) const;

  // A running sequence's twin: shares all blocks, costs none.
  SequenceId Fork(SequenceId id);
  // Drops the positions from length on, pending ones too. Where the cache must drop more
  // (CachedSequence::Truncate), those before length become pending. Requires length <= its cache's.
  void Truncate(SequenceId id, std::size_t length);
  // Gives all blocks of a running sequence back. What was done: kDrop where kSwap was asked for,
  // if there is nowhere to write or writing failed.
  Preemption Preempt(SequenceId id, Preemption how);
  // Runs a preempted sequence again with what the index and its file still have, and returns that
  // length; the rest is pending. kExhausted (only after kSwap): it stays preempted.
  base::Result<std::size_t> Resume(SequenceId id);
  bool is_preempted(SequenceId id) const { return At(id).preempted; }
  // Ends a sequence, finished or cancelled. Complete blocks stay findable.
  void Finish(SequenceId id);

  // Log-probabilities of the token at a cached position, or null if never told. They outlive the
  // sequence where its block does.
  const PromptLogProbs* LogProbs(SequenceId id, std::size_t position) const;
  void KeepLogProbs(SequenceId id, std::size_t position, PromptLogProbs log_probs);

  SequenceReport report(SequenceId id) const;  // Linear in its blocks.
  // Linear in the sequences and in reserved blocks; in all, where some that are shared are not
  // indexed.
  ManagerReport report() const;
  BlockPoolStats pool_stats() const { return pool_->stats(); }
  // Block tables that hold this block: 0 of one that is only kept in the index.
  std::uint32_t pool_references(BlockId id) const {
    return pool_->live(id) ? pool_->references(id) : 0;
  }

  // Counts a hit of each complete block that the sequence holds and that is indexed: it has begun
  // from the index, or as another's twin.
  void CountHits(SequenceId id);
  std::uint64_t hits(BlockId id) const;  // Of a block with storage; 0 where it is not indexed.
  // What the index holds of a tenant. Linear in all of it.
  std::vector<PrefixNodeReport> Indexed(std::uint64_t tenant_salt) const;
  // Aborts if an invariant does not hold, of pool, index and sequences too. Linear in everything.
  void CheckInvariants() const;

 private:
  friend struct CacheTestPeer;  // Breaks invariants, to see them caught.

  struct Entry {
    std::uint64_t tenant_salt;
    CachedSequence cache;
    std::vector<TokenId> tokens;
    std::size_t committed = 0;            // Positions of the cache whose tokens have been told.
    std::vector<PrefixNodeId> path = {};  // Of its complete blocks, as far as they are indexed.
    bool collided = false;                // The block after those has a name that lies.
    std::vector<base::Hash128> witnesses = {};  // Of blocks of the path, where there is a store.
    bool preempted = false;
    std::size_t swapped_length = 0;  // Positions in its file.
    std::uint64_t swapped_bytes = 0;
    std::map<std::size_t, PromptLogProbs> log_probs;  // By position, outside indexed blocks.
  };

  SequenceManager(const SequenceManagerOptions& options, std::unique_ptr<BlockPool> pool);
  const Entry& At(SequenceId id) const;
  Entry& At(SequenceId id);
  Entry& Running(SequenceId id);
  SequenceId Add(Entry entry);
  std::size_t TakePrefix(Entry& entry, std::span<const TokenId> tokens);
  // Indexes complete blocks that are not yet.
  void IndexBlocks(Entry& entry, bool restored = false);
  bool IndexNextBlock(Entry& entry, bool restored);
  void TakeCommitted(Entry& entry, std::span<const TokenId> tokens);
  // Hands the last block of the path to the store: what the index took of it.
  void PutBlock(Entry& entry, const GroupBlocks& taken);
  // Makes the path this long; what it ends with is pinned.
  void SetPath(Entry& entry, std::span<const PrefixNodeId> path);
  void ShortenPath(Entry& entry, std::size_t length);
  std::optional<PrefixNodeId> NodeOf(const Entry& entry, std::size_t block) const;
  // Log-probabilities of the last, incomplete block, which will be copied, are ours from now on.
  void CopyLogProbs(Entry& entry, PrefixNodeId node, std::size_t length);
  bool WriteSwap(SequenceId id, Entry& entry);
  // Takes the positions of the file that the index has lost. kExhausted: holds no block again.
  base::Result<std::size_t> SwapIn(SequenceId id, Entry& entry);
  base::Result<void> ReadSwap(Entry& entry, const std::string& path, std::size_t found);
  void RemoveSwap(SequenceId id, Entry& entry);
  std::string SwapPath(SequenceId id) const;
  void CheckEntry(const Entry& entry) const;

  const SequenceManagerOptions options_;
  const std::unique_ptr<BlockPool> pool_;
  std::optional<PrefixIndex> index_;
  const base::Hash128 layout_;
  std::deque<std::optional<Entry>> entries_;  // By id; they never move.
  std::vector<SequenceId> unused_;            // Ids without an entry.
  ManagerReport counts_;                      // Its counters since the start.
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_SEQUENCE_MANAGER_H_
