#include "kvcache/prefix_restore.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvcache/chain_hash.h"
#include "kvcache/test_block_store.h"

namespace kvasir::kvcache {
namespace {

using Tokens = std::vector<TokenId>;

CacheGeometry Shape(std::string_view policy) {
  CacheGeometryOptions options = {.layers = 2, .kv_heads = 1, .head_dim = 16, .hidden_dim = 16};
  if (!policy.empty()) {
    options.policy = CachePolicy::Parse(policy, {2, 1, 16, true, false}).value();
  }
  return CacheGeometry::Make(options).value();
}

Tokens Text(std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<TokenId>(i * i % 1000);
  return tokens;
}

class PrefixRestoreTest : public testing::TestWithParam<const char*> {
 protected:
  TestBlockStore store_;

  std::unique_ptr<SequenceManager> Make(BlockStore* store, std::uint64_t blocks = 64) {
    const CacheGeometry shape = Shape(GetParam());
    SequenceManagerOptions options;
    options.pool.budget_bytes = blocks * shape.block_bytes();
    options.store = store;
    return SequenceManager::Make(shape, options).value();
  }
  // What block `entry` of a group holds in these tests.
  static std::byte Mark(CacheGroupId group, std::size_t entry) {
    return static_cast<std::byte>(1 + 40 * group.index() + entry);
  }
  // Grows the sequence to the text's end, every block marked.
  static void Grow(SequenceManager& manager, SequenceId id, const Tokens& text) {
    const std::size_t begin = manager.cache(id).length();
    const std::size_t step = 16 - begin % 16;
    for (std::size_t at = begin; at < text.size();) {
      const std::size_t count = std::min(at == begin ? step : 16, text.size() - at);
      ASSERT_TRUE(manager.cache(id).Reserve(count));
      for (const BlockTable& table : manager.cache(id).tables()) {
        std::memset(table.addresses()[at / 16], static_cast<int>(Mark(table.group(), at / 16)),
                    manager.geometry().group(table.group()).block_bytes);
      }
      manager.cache(id).Advance(count);
      manager.cache(id).ExtendHistory(std::span(text).subspan(at, count));
      manager.Commit(id, std::span(text).subspan(at, count));
      at += count;
    }
  }
  static void ExpectMarked(const SequenceManager& manager, SequenceId id) {
    for (const BlockTable& table : manager.cache(id).tables()) {
      for (std::size_t i = 0; i < table.entries(); ++i) {
        if (!table.holds(i)) continue;
        const std::uint64_t bytes = manager.geometry().group(table.group()).block_bytes;
        const std::vector<std::byte> expected(bytes, Mark(table.group(), i));
        EXPECT_EQ(std::memcmp(table.addresses()[i], expected.data(), bytes), 0) << i;
      }
    }
  }
  // The length restored of this text in another process.
  std::size_t Restored(const Tokens& text, SequenceManager& manager) {
    const SequenceId id = manager.Create();
    manager.TakePrefix(id, text);
    const auto restore = PrefixRestore::Begin(manager, id, text, &store_);
    for (int i = 0; restore && !restore->Poll(); ++i) {
      manager.CheckInvariants();
      EXPECT_LT(i, 1000);
      if (i == 1000) break;
    }
    manager.CheckInvariants();
    ExpectMarked(manager, id);
    const std::size_t length = std::as_const(manager).cache(id).length();
    manager.Finish(id);
    manager.CheckInvariants();
    return length;
  }
};

TEST_P(PrefixRestoreTest, CompleteBlocksComeBackByteForByte) {
  const Tokens text = Text(100);
  {
    const auto manager = Make(&store_);
    const SequenceId id = manager->Create();
    Grow(*manager, id, text);
    manager->CheckInvariants();
  }
  const std::uint64_t puts = store_.puts;
  const auto manager = Make(&store_);
  EXPECT_EQ(Restored(text, *manager), 96u);
  EXPECT_EQ(manager->restored_tokens(), 96u);
  EXPECT_EQ(store_.puts, puts) << "what came from the store went there again";
  // Now the index has it.
  const std::uint64_t reads = store_.reads;
  EXPECT_EQ(Restored(text, *manager), 96u);
  EXPECT_EQ(store_.reads, reads);
  EXPECT_EQ(Restored(Text(15), *Make(&store_)), 0u);
}

TEST_P(PrefixRestoreTest, AHoleEndsWhatIsRestored) {
  const Tokens text = Text(100);
  {
    const auto manager = Make(&store_);
    Grow(*manager, manager->Create(), text);
  }
  const auto identities = Make(nullptr)->IdentitiesOf(0, text);
  for (std::size_t hole = 0; hole < 6; ++hole) {
    for (const bool lies : {false, true}) {
      store_.probe_lies = lies;
      store_.loses = [&](const BlockIdentity& identity) {
        return identity.name == identities[hole].name;
      };
      const std::size_t length = Restored(text, *Make(&store_));
      EXPECT_LE(length, 96u);
      EXPECT_EQ(length % 16, 0u);
      if (Shape(GetParam()).KeepsAll()) {
        EXPECT_EQ(length, 16 * hole);
      }
    }
  }
}

// As a store that is full does: what nobody reads goes first.
TEST_P(PrefixRestoreTest, WhatNoLengthNeedsMayBeGone) {
  const Tokens text = Text(100);
  {
    const auto manager = Make(&store_);
    Grow(*manager, manager->Create(), text);
  }
  const CacheGeometry shape = Shape(GetParam());
  const auto identities = Make(nullptr)->IdentitiesOf(0, text);
  store_.loses = [&](const BlockIdentity& identity) {
    for (std::size_t i = 0; i < identities.size(); ++i) {
      if (identities[i].name != identity.name) continue;
      return !shape.groups()[identity.group].retention.NeedsBlock(i, 96, 16);
    }
    return true;
  };
  EXPECT_EQ(Restored(text, *Make(&store_)), 96u);
}

TEST_P(PrefixRestoreTest, ACacheTooSmallTakesWhatItCan) {
  const Tokens text = Text(100);
  {
    const auto manager = Make(&store_);
    Grow(*manager, manager->Create(), text);
  }
  for (std::uint64_t blocks = 1; blocks < 8; ++blocks) {
    const std::size_t length = Restored(text, *Make(&store_, blocks));
    EXPECT_TRUE(length == 0 || length == 96) << blocks;
  }
}

TEST_P(PrefixRestoreTest, ExportedBlocksAreImported) {
  const Tokens text = Text(100);
  const auto manager = Make(nullptr);
  const SequenceId id = manager->Create();
  Grow(*manager, id, text);
  manager->Finish(id);
  EXPECT_EQ(manager->Export(7, text, store_), 0u);  // Another tenant.
  EXPECT_EQ(store_.puts, 0u);
  EXPECT_EQ(manager->Export(0, text, store_), 96u);
  EXPECT_GT(store_.puts, 0u);
  manager->CheckInvariants();
  const auto other = Make(nullptr);
  EXPECT_EQ(ImportPrefix(*other, 0, text, store_), 96u);
  other->CheckInvariants();
  EXPECT_EQ(Restored(text, *other), 96u);
  EXPECT_EQ(ImportPrefix(*other, 7, text, store_), 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, PrefixRestoreTest,
                         testing::Values("", "dtype=int8", "window=24,sinks=3", "1:window=24",
                                         "window=40;1:window=20", "k=int4,group=16",
                                         "0:store=hidden;1:window=32"));

TEST(WitnessHashTest, IsAChainOfItsOwn) {
  const Tokens one = Text(16);
  Tokens other = one;
  other.back() = 5;
  EXPECT_NE(WitnessHash({}, one), WitnessHash({}, other));
  EXPECT_NE(WitnessHash({}, one), WitnessHash({1, 0}, one));
  EXPECT_NE(WitnessHash({}, one), ChainHash({}, one));
}

}  // namespace
}  // namespace kvasir::kvcache
