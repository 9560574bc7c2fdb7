// BlockStore: complete blocks kept beyond this process, as the cache sees it.
#ifndef KVASIR_KVCACHE_BLOCK_STORE_H_
#define KVASIR_KVCACHE_BLOCK_STORE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "base/hash.h"
#include "base/token_id.h"

namespace kvasir::kvcache {

// One group's block of block_tokens positions, and everything that its bytes are a function of.
struct BlockIdentity {
  base::Hash128 fingerprint;  // Weights, configuration, contract, cache setting (chain_hash.h).
  base::Hash128 layout;       // What lies where in a block (layout_name.h).
  base::Hash128 name;         // Of all tokens up to its end, and of the tenant: its chain hash.
  base::Hash128 witness;      // Of the same tokens by a second chain: two would have to collide.
  std::uint32_t group = 0;
  std::uint64_t bytes = 0;            // Of the block.
  std::vector<base::TokenId> tokens;  // [block_tokens]: its own.
};

// What was found of a block that was asked for.
struct StoredBlock {
  bool found = false;
  base::AlignedArray<std::byte> bytes = {};  // [identity.bytes]; of a probe: empty
};

// Blocks being read. Thread-safe.
class StoreRead {
 public:
  // By the store, once: one for each block asked for.
  void Finish(std::vector<StoredBlock> blocks) {
    {
      const std::lock_guard lock(mutex_);
      blocks_ = std::move(blocks);
    }
    finished_.notify_all();
  }
  // Waits at most so long; whether it is finished.
  bool Wait(std::chrono::microseconds most) {
    std::unique_lock lock(mutex_);
    return finished_.wait_for(lock, most, [this] { return blocks_.has_value(); });
  }
  // Requires that it is finished; once.
  std::vector<StoredBlock> Take() {
    const std::lock_guard lock(mutex_);
    return *std::exchange(blocks_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<std::vector<StoredBlock>> blocks_;
};

// Since the start, but where it says now. Blocks are those of one cache group.
struct BlockStoreStats {
  std::uint64_t hits = 0;           // Blocks read and believed.
  std::uint64_t misses = 0;         // Asked for and not there.
  std::uint64_t refused = 0;        // There, but not what was asked for: damaged, or of others.
  std::uint64_t read_bytes = 0;     // Of believed values, as stored.
  std::uint64_t written = 0;        // Blocks.
  std::uint64_t written_bytes = 0;  // As stored.
  std::uint64_t dropped = 0;        // Blocks not written: the queue was full, or the store failed.
  std::uint64_t evicted = 0;        // Blocks given up for room, by this process.
  std::uint64_t faults = 0;         // Operations that failed or took too long.
  std::uint64_t late = 0;           // Reads that nobody waited for any more.
  std::uint64_t queued_bytes = 0;   // Now, to be written.
  bool open = true;                 // Now; false: left alone for a while after faults.
};

// A cache of the cache: what it gives is believed only after everything in the identity and a
// checksum have been compared, so it may lose blocks, but not change an answer. Thread-safe.
class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Hands a complete block over, to be written some time, or dropped. Copies; never waits for the
  // store. Requires block.size() == identity.bytes.
  virtual void Put(const BlockIdentity& identity, std::span<const std::byte> block) = 0;
  // Begins to read. With probe: only whether they seem to be there. Who gives the result up is not
  // served any more.
  virtual std::shared_ptr<StoreRead> Read(std::vector<BlockIdentity> wanted, bool probe) = 0;
  // How long a read is worth waiting for.
  virtual std::chrono::microseconds patience() const = 0;
  virtual BlockStoreStats stats() const = 0;
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_STORE_H_
