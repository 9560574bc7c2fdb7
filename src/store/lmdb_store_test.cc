#include "store/lmdb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/test_directory.h"
#include "store/store_test_values.h"

namespace kvasir::store {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::unique_ptr<LmdbStore> Open(const base::TestDirectory& directory,
                                std::uint64_t limit = 64 * kMiB) {
  auto store = LmdbStore::Open({.directory = directory.path(), .limit_bytes = limit});
  EXPECT_TRUE(store) << (store ? "" : store.error().message);
  return std::move(store.value());
}

PutCounts PutOne(LmdbStore& store, std::uint64_t number, std::size_t size) {
  const std::vector<std::byte> value = TestValue(number, size);
  const KeyValue entry = {TestKey(number), value};
  const auto put = store.Put(std::span(&entry, 1));
  EXPECT_TRUE(put) << (put ? "" : put.error().message);
  return put.value();
}

// The numbers of [0, count) whose value is there and right.
std::vector<std::uint64_t> Found(LmdbStore& store, std::uint64_t count) {
  std::vector<BlockKey> keys;
  for (std::uint64_t i = 0; i < count; ++i) keys.push_back(TestKey(i));
  std::vector<std::uint64_t> found;
  const auto got = store.Get(keys, [&](std::size_t i, std::span<const std::byte> value) {
    EXPECT_TRUE(IsTestValue(i, value)) << i;
    found.push_back(i);
  });
  EXPECT_TRUE(got);
  const auto there = store.Has(keys);
  EXPECT_TRUE(there);
  for (std::uint64_t i = 0, next = 0; i < count; ++i) {
    const bool got_it = next < found.size() && found[next] == i;
    if (got_it) ++next;
    EXPECT_EQ(there.value()[i], got_it);
  }
  return found;
}

TEST(LmdbStoreTest, KeepsValuesOverARestart) {
  const base::TestDirectory directory;
  {
    const auto store = Open(directory);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(PutOne(*store, i, 5000 * i).written, 1u);
    EXPECT_EQ(PutOne(*store, 3, 15000).written, 0u);  // It is there.
    store->CheckInvariants();
  }
  const auto store = Open(directory);
  EXPECT_FALSE(store->set_aside());
  EXPECT_EQ(Found(*store, 25).size(), 20u);
  const std::vector<BlockKey> gone = {TestKey(0), TestKey(7), TestKey(99)};
  EXPECT_TRUE(store->Remove(gone));
  EXPECT_EQ(Found(*store, 25).size(), 18u);
  store->CheckInvariants();
}

TEST(LmdbStoreTest, RefusesWhatItCannotOpen) {
  const base::TestDirectory directory;
  const auto small = LmdbStore::Open({.directory = directory.path(), .limit_bytes = kMiB - 1});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, base::ErrorCode::kUsage);
  const auto first = Open(directory);
  const auto second = LmdbStore::Open({.directory = directory.path() + "/."});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, testing::HasSubstr("open already"));
  std::ofstream(directory.path() + "/file") << "x";
  const auto file = LmdbStore::Open({.directory = directory.path() + "/file"});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::ErrorCode::kIo);
  const auto nowhere = LmdbStore::Open({.directory = "/proc/kvasir/store"});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, testing::HasSubstr("/proc/kvasir/store"));
}

TEST(LmdbStoreTest, ItsDirectoryIsForItsOwnerAlone) {
  const base::TestDirectory directory;
  const std::string path = directory.path() + "/a/b";
  const auto store = LmdbStore::Open({.directory = path}).value();
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(path + "/data.mdb").permissions(),
            perms::owner_read | perms::owner_write);
}

// Against a list of keys by their last use.
TEST(LmdbStoreTest, TheLeastRecentlyUsedGoFirst) {
  constexpr std::size_t kSize = 40000;  // 40,960 and 256 as they are charged.
  constexpr std::uint64_t kLimit = 20 * (40960 + 256);
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    const base::TestDirectory directory;
    auto store = Open(directory, kLimit < kMiB ? kMiB : kLimit);
    const std::size_t room = kMiB / (40960 + 256);
    std::mt19937 random(seed);
    std::list<std::uint64_t> order;  // The last used at the end.
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t number = random() % 60;
      const bool there = std::ranges::find(order, number) != order.end();
      if (random() % 10 == 0) {
        const BlockKey key = TestKey(number);
        ASSERT_TRUE(store->Touch(std::span(&key, 1)));
        if (!there) continue;
      } else if (random() % 10 == 0) {
        const BlockKey key = TestKey(number);
        ASSERT_TRUE(store->Remove(std::span(&key, 1)));
        order.remove(number);
        continue;
      } else {
        const PutCounts counts = PutOne(*store, number, kSize);
        EXPECT_EQ(counts.written, there ? 0u : 1u);
        EXPECT_EQ(counts.evicted, !there && order.size() == room ? 1u : 0u);
        if (!there && order.size() == room) order.pop_front();
      }
      order.remove(number);
      order.push_back(number);
      if (step % 50 == 0) {
        store.reset();
        store = Open(directory, kMiB);
      }
    }
    store->CheckInvariants();
    std::vector<std::uint64_t> expected(order.begin(), order.end());
    std::ranges::sort(expected);
    EXPECT_EQ(Found(*store, 60), expected) << "seed " << seed;
  }
}

// Sizes that leave holes of every length: room is found, or made, all the same.
TEST(LmdbStoreTest, AFullFileMakesRoom) {
  const base::TestDirectory directory;
  const auto store = Open(directory, 4 * kMiB);
  std::mt19937 random(7);
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::size_t size = 1000 << (random() % 11);
    EXPECT_EQ(PutOne(*store, i, size).written, 1u) << i;
  }
  EXPECT_EQ(PutOne(*store, 1000, 5 * kMiB).dropped, 1u);
  store->CheckInvariants();
  const std::vector<std::uint64_t> found = Found(*store, 400);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), 399u);
  EXPECT_LE(std::filesystem::file_size(directory.path() + "/data.mdb"),
            4 * kMiB * 9 / 8 + kLmdbSlack);
}

TEST(LmdbStoreTest, TwoProcessesShareOneDirectory) {
  const base::TestDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    auto store = LmdbStore::Open({.directory = directory.path(), .limit_bytes = 8 * kMiB}).value();
    for (std::uint64_t i = 0; i < 50; i += 2) PutOne(*store, i, 3000);
    _exit(0);
  }
  // With a larger limit, so that each maps what the other has grown.
  const auto store = Open(directory, 16 * kMiB);
  for (std::uint64_t i = 1; i < 50; i += 2) PutOne(*store, i, 3000);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Found(*store, 50).size(), 50u);
  store->CheckInvariants();
}

// KVASIR_STORE_KILLS sets how often; nightly does it a thousand times.
TEST(LmdbStoreTest, KilledWhileWritingItStartsWholeAgain) {
  const char* asked = std::getenv("KVASIR_STORE_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 25;
  const base::TestDirectory directory;
  std::mt19937 random(11);
  std::uint64_t survived = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) {
      auto store =
          LmdbStore::Open({.directory = directory.path(), .limit_bytes = 2 * kMiB}).value();
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t number = (i * 7 + static_cast<std::uint64_t>(kill_number)) % 200;
        PutOne(*store, number, 500 << (number % 8));
        const BlockKey old = TestKey((number + 50) % 200);
        if (i % 3 == 0 && !store->Remove(std::span(&old, 1))) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + random() % 30000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself, cycle " << kill_number;
    const auto store = Open(directory, 2 * kMiB);
    ASSERT_FALSE(store->set_aside()) << "cycle " << kill_number;
    store->CheckInvariants();
    survived += Found(*store, 200).size();
  }
  EXPECT_GT(survived, 0u);
}

}  // namespace
}  // namespace kvasir::store
