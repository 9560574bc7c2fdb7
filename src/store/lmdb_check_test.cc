#include "store/lmdb_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/test_directory.h"
#include "store/lmdb_store.h"
#include "store/store_test_values.h"

namespace kvasir::store {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A small store's file.
std::string SmallFile(const base::TestDirectory& directory) {
  {
    auto store = LmdbStore::Open({.directory = directory.path()}).value();
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::vector<std::byte> value = TestValue(i, 100 + 300 * i);
      const KeyValue entry = {TestKey(i), value};
      EXPECT_TRUE(store->Put(std::span(&entry, 1)));
    }
    const BlockKey key = TestKey(5);
    EXPECT_TRUE(store->Remove(std::span(&key, 1)));
  }
  return ReadFile(directory.path() + "/data.mdb");
}

// Opens it, whatever it has become; every value read is right or known to be wrong.
void Use(const base::TestDirectory& directory, std::uint64_t* believed) {
  const auto store = LmdbStore::Open({.directory = directory.path()});
  ASSERT_TRUE(store) << store.error().message;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const BlockKey key = TestKey(i);
    (void)store.value()->Get(std::span(&key, 1),
                             [&](std::size_t, std::span<const std::byte> value) {
                               if (IsTestValue(i, value)) ++*believed;
                             });
  }
}

TEST(LmdbCheckTest, ASoundFileIsSound) {
  const base::TestDirectory directory;
  EXPECT_TRUE(LmdbFileIsSound(directory.path()));  // None yet.
  SmallFile(directory);
  EXPECT_TRUE(LmdbFileIsSound(directory.path()));
}

TEST(LmdbCheckTest, AnotherFileIsSetAside) {
  for (const std::string& bytes :
       {std::string("no database"), std::string(100000, '\0'), std::string(1, 'x')}) {
    const base::TestDirectory directory;
    WriteFile(directory.path() + "/data.mdb", bytes);
    auto store = LmdbStore::Open({.directory = directory.path()});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_TRUE(store.value()->set_aside());
    EXPECT_NE(store.value()->notice().find(directory.path()), std::string::npos);
    EXPECT_EQ(ReadFile(directory.path() + "/data.mdb.damaged"), bytes);
  }
}

TEST(LmdbCheckTest, ATruncatedFileNeverCrashesTheProgram) {
  const base::TestDirectory whole;
  const std::string bytes = SmallFile(whole);
  std::uint64_t believed = 0;
  for (std::size_t size = 0; size < bytes.size(); size += 4096 * 3 + 1000) {
    const base::TestDirectory directory;
    WriteFile(directory.path() + "/data.mdb", bytes.substr(0, size));
    Use(directory, &believed);
  }
}

// One byte of every page, and the heads of pages, where LMDB keeps what it trusts.
TEST(LmdbCheckTest, DamageAnywhereNeverCrashesTheProgram) {
  const base::TestDirectory whole;
  const std::string bytes = SmallFile(whole);
  std::mt19937 random(3);
  std::uint64_t believed = 0;
  for (std::size_t page = 0; page < bytes.size() / 4096; ++page) {
    const base::TestDirectory directory;
    std::string damaged = bytes;
    const std::size_t offset = page * 4096 + (page % 2 == 0 ? random() % 64 : random() % 4096);
    damaged[offset] = static_cast<char>(damaged[offset] ^ static_cast<char>(1 + random() % 255));
    WriteFile(directory.path() + "/data.mdb", damaged);
    Use(directory, &believed);
  }
  EXPECT_GT(believed, 0u);
}

}  // namespace
}  // namespace kvasir::store
