#include "store/queued_store.h"

#include <sys/resource.h>
#include <unistd.h>

#include <new>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kvcache::BlockIdentity;
using kvcache::StoredBlock;
using kvcache::StoreRead;

constexpr std::size_t kBatchValues = 64;
constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;
constexpr std::size_t kMostTouches = 1 << 16;  // Waiting; beyond, their order is forgotten.

// A thread that gets the processor when no other wants it; the kernel's thread id is its own.
void YieldToOthers() {
  constexpr int kLowest = 19;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
}

BlockKey KeyOf(const BlockIdentity& identity) { return {identity.name, identity.group}; }

}  // namespace

Result<std::unique_ptr<QueuedStore>> QueuedStore::Make(std::unique_ptr<KeyValueStore> target,
                                                       const QueuedStoreOptions& options) {
  std::unique_ptr<QueuedStore> store(new QueuedStore(std::move(target), options));
  try {
    store->reader_ = std::thread([&made = *store] { made.ReadLoop(); });
    store->writer_ = std::thread([&made = *store] { made.WriteLoop(); });
  } catch (const std::system_error& error) {
    return MakeError(ErrorCode::kExhausted, "the system starts no thread for the store: {}",
                     error.what());
  }
  return store;
}

QueuedStore::~QueuedStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    drain_until_ = std::chrono::steady_clock::now() + options_.drain;
  }
  read_wake_.notify_all();
  write_wake_.notify_all();
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
}

kvcache::BlockStoreStats QueuedStore::stats() const {
  const std::lock_guard lock(mutex_);
  kvcache::BlockStoreStats stats = stats_;
  stats.open = breaker_.Allows(std::chrono::steady_clock::now());
  return stats;
}

bool QueuedStore::Settle(bool succeeded) {
  if (succeeded) {
    breaker_.OnSuccess();
    return true;
  }
  breaker_.OnFault(std::chrono::steady_clock::now());
  const std::lock_guard lock(mutex_);
  ++stats_.faults;
  return false;
}

// ------------------------------------------------------------------ reading

std::shared_ptr<StoreRead> QueuedStore::Read(std::vector<BlockIdentity> wanted, bool probe) {
  auto read = std::make_shared<StoreRead>();
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back({read, std::move(wanted), probe});
  }
  read_wake_.notify_one();
  return read;
}

void QueuedStore::ReadLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    read_wake_.wait(lock, [this] { return stopping_ || !reads_.empty(); });
    if (stopping_) return;  // Nobody waits for ever: every reader has a deadline.
    const PendingRead pending = std::move(reads_.front());
    reads_.pop_front();
    if (pending.read.expired()) {
      ++stats_.late;
      continue;
    }
    lock.unlock();
    std::vector<StoredBlock> blocks(pending.wanted.size());
    try {
      blocks = ReadNow(pending);
    } catch (const std::bad_alloc&) {  // Then they are computed.
      (void)Settle(false);
    }
    if (const auto read = pending.read.lock()) read->Finish(std::move(blocks));
    lock.lock();
  }
}

std::vector<StoredBlock> QueuedStore::ReadNow(const PendingRead& pending) {
  std::vector<StoredBlock> blocks(pending.wanted.size());
  if (!breaker_.Allows(std::chrono::steady_clock::now())) return blocks;
  std::vector<BlockKey> keys;
  for (const BlockIdentity& identity : pending.wanted) keys.push_back(KeyOf(identity));
  if (pending.probe) {
    const auto there = target_->Has(keys);
    if (!Settle(there.has_value())) return blocks;
    for (std::size_t i = 0; i < keys.size(); ++i) blocks[i].found = there.value()[i];
    return blocks;
  }
  std::vector<BlockKey> refused;
  std::uint64_t bytes = 0;
  const auto got = target_->Get(keys, [&](std::size_t i, std::span<const std::byte> value) {
    auto block = ReadBlockValue(pending.wanted[i], value);
    if (!block) {
      refused.push_back(keys[i]);
      return;
    }
    bytes += value.size();
    blocks[i] = {true, *std::move(block)};
  });
  (void)Settle(got.has_value());  // What came before a fault has been checked all the same.
  Account(pending, blocks, refused, bytes);
  return blocks;
}

void QueuedStore::Account(const PendingRead& pending, const std::vector<StoredBlock>& blocks,
                          std::span<const BlockKey> refused, std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!blocks[i].found) continue;
      ++hits;
      if (touches_.size() < kMostTouches) touches_.push_back(KeyOf(pending.wanted[i]));
    }
    stats_.hits += hits;
    stats_.refused += refused.size();
    stats_.misses += blocks.size() - hits - refused.size();
    stats_.read_bytes += bytes;
    removals_.insert(removals_.end(), refused.begin(), refused.end());
  }
  write_wake_.notify_one();
}

// ------------------------------------------------------------------ writing

void QueuedStore::Put(const BlockIdentity& identity, std::span<const std::byte> block) {
  const auto now = std::chrono::steady_clock::now();
  const bool open = breaker_.Allows(now);
  std::vector<std::byte> room;
  {
    const std::lock_guard lock(mutex_);
    if (!open || stopping_ || stats_.queued_bytes + block.size() > options_.queue_bytes) {
      ++stats_.dropped;
      return;
    }
    stats_.queued_bytes += block.size();
    last_put_ = now;
    if (!spare_.empty()) {
      room = std::move(spare_.back());
      spare_.pop_back();
      spare_bytes_ -= room.capacity();
    }
  }
  PendingPut put = {KeyOf(identity), {}};
  try {
    put.value = BeginBlockValue(identity, block, std::move(room));
  } catch (const std::bad_alloc&) {  // What is only worth keeping is not worth failing for.
  }
  {
    const std::lock_guard lock(mutex_);
    stats_.queued_bytes += put.value.size();
    stats_.queued_bytes -= block.size();
    if (put.value.empty()) {
      ++stats_.dropped;
      return;
    }
    puts_.push_back(std::move(put));
  }
  write_wake_.notify_one();
}

QueuedStore::WriteBatch QueuedStore::TakeBatch() {
  WriteBatch batch = {{}, std::exchange(touches_, {}), std::exchange(removals_, {})};
  std::uint64_t bytes = 0;
  while (!puts_.empty() && batch.puts.size() < kBatchValues && bytes < kBatchBytes) {
    bytes += puts_.front().value.size();
    batch.puts.push_back(std::move(puts_.front()));
    puts_.pop_front();
  }
  return batch;
}

bool QueuedStore::IsTimeToWrite() const {
  return stopping_ || flushing_ > 0 || stats_.queued_bytes >= options_.queue_bytes / 2 ||
         std::chrono::steady_clock::now() - last_put_ >= kQuiet;
}

void QueuedStore::WriteLoop() {
  YieldToOthers();
  std::unique_lock lock(mutex_);
  while (true) {
    write_wake_.wait(lock, [this] { return stopping_ || HasWrites(); });
    while (!IsTimeToWrite()) write_wake_.wait_for(lock, kQuiet);
    if (stopping_ && std::chrono::steady_clock::now() >= drain_until_) {
      stats_.dropped += puts_.size();
      puts_.clear();
    }
    WriteBatch batch = TakeBatch();
    if (batch.empty()) return;  // Stopping, and all is written.
    std::uint64_t queued = 0;
    for (const PendingPut& put : batch.puts) queued += put.value.size();
    writing_ = true;
    lock.unlock();
    try {
      WriteNow(batch);
    } catch (const std::bad_alloc&) {
      (void)Settle(false);
    }
    lock.lock();
    writing_ = false;
    stats_.queued_bytes -= queued;
    for (PendingPut& put : batch.puts) {
      if (spare_bytes_ + put.value.capacity() > options_.queue_bytes) break;
      spare_bytes_ += put.value.capacity();
      spare_.push_back(std::move(put.value));
    }
    written_.notify_all();
  }
}

void QueuedStore::WriteNow(WriteBatch& batch) {
  std::vector<KeyValue> values;
  bool open = breaker_.Allows(std::chrono::steady_clock::now());
  if (open && !batch.removals.empty()) open = Settle(target_->Remove(batch.removals).has_value());
  for (PendingPut& put : batch.puts) {
    if (open) FinishBlockValue(options_.compression, put.value);
    values.push_back({put.key, put.value});
  }
  PutCounts counts = {.dropped = values.size()};
  if (open && !values.empty()) {
    const auto put = target_->Put(values);
    if ((open = Settle(put.has_value()))) counts = put.value();
  }
  if (open && !batch.touches.empty()) Settle(target_->Touch(batch.touches).has_value());
  const std::lock_guard lock(mutex_);
  stats_.written += counts.written;
  stats_.written_bytes += counts.written_bytes;
  stats_.dropped += counts.dropped;
  stats_.evicted += counts.evicted;
}

bool QueuedStore::Flush(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  ++flushing_;
  write_wake_.notify_one();
  const bool done = written_.wait_for(lock, most, [this] { return !HasWrites() && !writing_; });
  --flushing_;
  return done;
}

}  // namespace kvasir::store
