#include "store/queued_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kvcache::BlockIdentity;
using kvcache::StoredBlock;
using namespace std::chrono_literals;

// Keeps values in memory, and does what a test asks of it. Outlives the store that owns its front.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::byte>> values;
  bool holds_writes = false;  // They wait until it is false.
  bool holds_reads = false;
  bool fails = false;
  int waiting = 0;  // Calls held.
  int calls = 0;
  std::vector<BlockKey> touched;
  std::vector<BlockKey> removed;

  void Set(bool World::*flag, bool value) {
    {
      const std::lock_guard lock(mutex);
      this->*flag = value;
    }
    changed.notify_all();
  }
  void AwaitHeld(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting >= count; });
  }
};

class WorldStore : public KeyValueStore {
 public:
  explicit WorldStore(World& world) : world_(world) {}

  std::string_view name() const override { return "world"; }
  Result<std::vector<bool>> Has(std::span<const BlockKey> keys) override {
    KV_TRY(Enter(&World::holds_reads));
    const std::lock_guard lock(world_.mutex);
    std::vector<bool> there;
    for (const BlockKey& key : keys) there.push_back(world_.values.contains(Name(key)));
    return there;
  }
  Result<void> Get(std::span<const BlockKey> keys, const Visit& visit) override {
    KV_TRY(Enter(&World::holds_reads));
    const std::lock_guard lock(world_.mutex);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = world_.values.find(Name(keys[i]));
      if (found != world_.values.end()) visit(i, found->second);
    }
    return base::Success();
  }
  Result<PutCounts> Put(std::span<const KeyValue> values) override {
    KV_TRY(Enter(&World::holds_writes));
    const std::lock_guard lock(world_.mutex);
    PutCounts counts;
    for (const KeyValue& entry : values) {
      world_.values[Name(entry.key)] = {entry.value.begin(), entry.value.end()};
      ++counts.written;
      counts.written_bytes += entry.value.size();
    }
    return counts;
  }
  Result<void> Touch(std::span<const BlockKey> keys) override {
    const std::lock_guard lock(world_.mutex);
    world_.touched.insert(world_.touched.end(), keys.begin(), keys.end());
    return base::Success();
  }
  Result<void> Remove(std::span<const BlockKey> keys) override {
    const std::lock_guard lock(world_.mutex);
    for (const BlockKey& key : keys) world_.values.erase(Name(key));
    world_.removed.insert(world_.removed.end(), keys.begin(), keys.end());
    return base::Success();
  }

 private:
  static std::pair<std::uint64_t, std::uint32_t> Name(const BlockKey& key) {
    return {key.name.low, key.group};
  }
  Result<void> Enter(bool World::*held) {
    std::unique_lock lock(world_.mutex);
    ++world_.calls;
    ++world_.waiting;
    world_.changed.notify_all();
    world_.changed.wait(lock, [&] { return !(world_.*held); });
    --world_.waiting;
    if (world_.fails) return MakeError(ErrorCode::kIo, "as asked");
    return base::Success();
  }

  World& world_;
};

constexpr std::size_t kBlockBytes = 1024;

BlockIdentity Identity(std::uint64_t number) {
  return {.fingerprint = {1, 1},
          .layout = {2, 2},
          .name = {number, 0},
          .witness = {number, 1},
          .group = 0,
          .bytes = kBlockBytes,
          .tokens = {1, 2, 3}};
}

std::vector<std::byte> Block(std::uint64_t number) {
  return std::vector<std::byte>(kBlockBytes, static_cast<std::byte>(number));
}

class QueuedStoreTest : public testing::Test {
 protected:
  World world_;

  std::unique_ptr<QueuedStore> Make(QueuedStoreOptions options = {}) {
    return QueuedStore::Make(std::make_unique<WorldStore>(world_), options).value();
  }
  static std::vector<StoredBlock> ReadAll(QueuedStore& store, std::uint64_t count,
                                          bool probe = false) {
    std::vector<BlockIdentity> wanted;
    for (std::uint64_t i = 0; i < count; ++i) wanted.push_back(Identity(i));
    const auto read = store.Read(wanted, probe);
    EXPECT_TRUE(read->Wait(10s));
    return read->Take();
  }
  static bool Is(const StoredBlock& block, std::uint64_t number) {
    return block.found && std::ranges::equal(block.bytes.span(), Block(number));
  }
};

TEST_F(QueuedStoreTest, WritesBehindAndReadsBack) {
  const auto store = Make();
  for (std::uint64_t i = 0; i < 200; ++i) store->Put(Identity(i), Block(i));
  ASSERT_TRUE(store->Flush(10s));
  const std::vector<StoredBlock> blocks = ReadAll(*store, 201);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(Is(blocks[i], i)) << i;
  EXPECT_FALSE(blocks[200].found);
  const std::vector<StoredBlock> probed = ReadAll(*store, 201, true);
  EXPECT_TRUE(probed[199].found && probed[199].bytes.size() == 0 && !probed[200].found);
  ASSERT_TRUE(store->Flush(10s));
  const kvcache::BlockStoreStats stats = store->stats();
  EXPECT_EQ(stats.hits, 200u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.written, 200u);
  EXPECT_EQ(stats.queued_bytes, 0u);
  EXPECT_EQ(stats.dropped + stats.faults + stats.refused, 0u);
  EXPECT_EQ(world_.touched.size(), 200u);
}

TEST_F(QueuedStoreTest, AStoreThatHangsHoldsNobodyUp) {
  world_.holds_writes = true;
  world_.holds_reads = true;
  const auto store = Make({.queue_bytes = 10 * kBlockBytes});
  store->Put(Identity(0), Block(0));
  world_.AwaitHeld(1);
  // What does not fit beside the held one is dropped, and nothing waits.
  for (std::uint64_t i = 1; i < 50; ++i) store->Put(Identity(i), Block(i));
  const std::uint64_t dropped = store->stats().dropped;
  EXPECT_GE(dropped, 40u);
  EXPECT_LE(store->stats().queued_bytes, 10 * (kBlockBytes + 256));
  const auto read = store->Read({Identity(0)}, false);
  EXPECT_FALSE(read->Wait(1ms));
  world_.Set(&World::holds_writes, false);
  world_.Set(&World::holds_reads, false);
  EXPECT_TRUE(read->Wait(10s));
  ASSERT_TRUE(store->Flush(10s));
  EXPECT_EQ(store->stats().written, 50 - dropped);
}

TEST_F(QueuedStoreTest, AReadGoesPastTheWritesBeforeIt) {
  const auto store = Make();
  store->Put(Identity(0), Block(0));
  ASSERT_TRUE(store->Flush(10s));
  world_.Set(&World::holds_writes, true);
  store->Put(Identity(1), Block(1));
  world_.AwaitHeld(1);
  EXPECT_TRUE(Is(ReadAll(*store, 1)[0], 0));
  world_.Set(&World::holds_writes, false);
}

TEST_F(QueuedStoreTest, AnAbandonedReadIsNotDone) {
  world_.holds_reads = true;
  const auto store = Make();
  const auto held = store->Read({Identity(0)}, true);
  world_.AwaitHeld(1);
  (void)store->Read({Identity(1)}, true);
  world_.Set(&World::holds_reads, false);
  EXPECT_FALSE(ReadAll(*store, 1)[0].found);
  EXPECT_EQ(store->stats().late, 1u);
}

TEST_F(QueuedStoreTest, AfterAFaultItIsLeftAlone) {
  world_.fails = true;
  const auto store = Make();
  EXPECT_FALSE(ReadAll(*store, 1)[0].found);
  EXPECT_FALSE(store->stats().open);
  EXPECT_EQ(store->stats().faults, 1u);
  world_.Set(&World::fails, false);
  const int calls = world_.calls;
  EXPECT_FALSE(ReadAll(*store, 3)[0].found);
  store->Put(Identity(0), Block(0));
  ASSERT_TRUE(store->Flush(10s));
  EXPECT_EQ(world_.calls, calls);
  EXPECT_EQ(store->stats().dropped, 1u);
}

TEST_F(QueuedStoreTest, WhatIsNotBelievedIsRemoved) {
  const auto store = Make();
  for (std::uint64_t i = 0; i < 3; ++i) store->Put(Identity(i), Block(i));
  ASSERT_TRUE(store->Flush(10s));
  {
    const std::lock_guard lock(world_.mutex);
    world_.values.at({1, 0})[200] ^= std::byte{1};
  }
  const std::vector<StoredBlock> blocks = ReadAll(*store, 3);
  EXPECT_TRUE(Is(blocks[0], 0) && !blocks[1].found && Is(blocks[2], 2));
  ASSERT_TRUE(store->Flush(10s));
  EXPECT_EQ(store->stats().refused, 1u);
  EXPECT_EQ(store->stats().misses, 0u);
  EXPECT_EQ(world_.values.size(), 2u);
}

TEST_F(QueuedStoreTest, WhatIsQueuedIsWrittenAtTheEnd) {
  {
    const auto store = Make();
    for (std::uint64_t i = 0; i < 100; ++i) store->Put(Identity(i), Block(i));
  }
  EXPECT_EQ(world_.values.size(), 100u);
}

TEST_F(QueuedStoreTest, ButNotForLongerThanAllowed) {
  std::thread releaser;
  {
    const auto store = Make({.drain = 0ms});
    world_.Set(&World::holds_writes, true);
    store->Put(Identity(0), Block(0));
    world_.AwaitHeld(1);
    for (std::uint64_t i = 1; i < 100; ++i) store->Put(Identity(i), Block(i));
    releaser = std::thread([this] {
      std::this_thread::sleep_for(20ms);
      world_.Set(&World::holds_writes, false);
    });
  }
  releaser.join();
  EXPECT_EQ(world_.values.size(), 1u);
}

}  // namespace
}  // namespace kvasir::store
