// QueuedStore: a KeyValueStore behind queues, as the cache wants it.
#ifndef KVASIR_STORE_QUEUED_STORE_H_
#define KVASIR_STORE_QUEUED_STORE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "kvcache/block_store.h"
#include "store/block_value.h"
#include "store/circuit_breaker.h"
#include "store/key_value.h"

namespace kvasir::store {

struct QueuedStoreOptions {
  std::uint64_t queue_bytes = std::uint64_t{128} << 20;  // Most bytes waiting to be written.
  std::chrono::milliseconds patience{1000};              // For a read.
  std::chrono::milliseconds drain{5000};  // For what is queued, when the store is closed.
  Compression compression = Compression::kOff;
};

// Two threads of its own, one that reads and one that writes, so that a read waits for no write;
// the writing one yields to every other thread of the machine, and begins when blocks have stopped
// coming for kQuiet, or half the queue is full. What cannot be queued, written in time or believed
// is dropped and counted. Memory of the queue is kept and used again. Thread-safe.
class QueuedStore : public kvcache::BlockStore {
 public:
  // kExhausted if the system starts no thread.
  static base::Result<std::unique_ptr<QueuedStore>> Make(std::unique_ptr<KeyValueStore> target,
                                                         const QueuedStoreOptions& options);
  // Writes what is queued, for options.drain at most.
  ~QueuedStore() override;
  QueuedStore(const QueuedStore&) = delete;
  QueuedStore& operator=(const QueuedStore&) = delete;

  std::string_view name() const { return target_->name(); }
  std::string notice() const { return target_->notice(); }

  void Put(const kvcache::BlockIdentity& identity, std::span<const std::byte> block) override;
  std::shared_ptr<kvcache::StoreRead> Read(std::vector<kvcache::BlockIdentity> wanted,
                                           bool probe) override;
  std::chrono::microseconds patience() const override { return options_.patience; }
  kvcache::BlockStoreStats stats() const override;

  static constexpr std::chrono::milliseconds kQuiet{200};

  // Waits until everything queued so far is written or dropped; false if it takes longer.
  bool Flush(std::chrono::milliseconds most);

 private:
  struct PendingPut {
    BlockKey key;
    std::vector<std::byte> value;
  };
  struct PendingRead {
    std::weak_ptr<kvcache::StoreRead> read;
    std::vector<kvcache::BlockIdentity> wanted;
    bool probe;
  };
  // What the writing thread does next.
  struct WriteBatch {
    std::vector<PendingPut> puts;
    std::vector<BlockKey> touches;
    std::vector<BlockKey> removals;
    bool empty() const { return puts.empty() && touches.empty() && removals.empty(); }
  };

  QueuedStore(std::unique_ptr<KeyValueStore> target, const QueuedStoreOptions& options)
      : target_(std::move(target)), options_(options) {}

  void ReadLoop();
  void WriteLoop();
  std::vector<kvcache::StoredBlock> ReadNow(const PendingRead& pending);
  // Of believed blocks and refused ones: told to the store by the writing thread.
  void Account(const PendingRead& pending, const std::vector<kvcache::StoredBlock>& blocks,
               std::span<const BlockKey> refused, std::uint64_t bytes);
  WriteBatch TakeBatch();  // Under mutex_.
  // Whether the writing thread should begin. Under mutex_.
  bool IsTimeToWrite() const;
  bool HasWrites() const { return !puts_.empty() || !touches_.empty() || !removals_.empty(); }
  void WriteNow(WriteBatch& batch);
  // Counts a fault, or that all is well.
  bool Settle(bool succeeded);

  const std::unique_ptr<KeyValueStore> target_;
  const QueuedStoreOptions options_;
  CircuitBreaker breaker_;

  mutable std::mutex mutex_;
  std::condition_variable read_wake_;
  std::condition_variable write_wake_;
  std::condition_variable written_;  // Of Flush.
  // Under the mutex:
  std::deque<PendingRead> reads_;
  std::deque<PendingPut> puts_;
  std::vector<std::vector<std::byte>> spare_;  // Memory for values to come,
  std::uint64_t spare_bytes_ = 0;              // at most queue_bytes.
  std::chrono::steady_clock::time_point last_put_{};
  int flushing_ = 0;  // Callers that wait for all to be written.
  std::vector<BlockKey> touches_;
  std::vector<BlockKey> removals_;
  bool writing_ = false;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point drain_until_{};  // Once stopping.
  kvcache::BlockStoreStats stats_;

  std::thread reader_;  // Last: they use all the others.
  std::thread writer_;
};

}  // namespace kvasir::store

#endif  // KVASIR_STORE_QUEUED_STORE_H_
