// What a SequenceManager hands to its store.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kvcache/chain_hash.h"
#include "kvcache/sequence_manager.h"
#include "kvcache/test_block_store.h"

namespace kvasir::kvcache {
namespace {

using Tokens = std::vector<TokenId>;

CacheGeometry Shape(std::string_view policy) {
  CacheGeometryOptions options = {.layers = 2, .kv_heads = 1, .head_dim = 16};
  options.policy = CachePolicy::Parse(policy, {2, 1, 16, true, false}).value();
  return CacheGeometry::Make(options).value();
}

std::unique_ptr<SequenceManager> Make(std::string_view policy, BlockStore& store) {
  const CacheGeometry shape = Shape(policy);
  SequenceManagerOptions options;
  options.pool.budget_bytes = 64 * shape.block_bytes();
  options.index.fingerprint = {7, 8};
  options.store = &store;
  return SequenceManager::Make(shape, options).value();
}

void Grow(SequenceManager& manager, SequenceId id, const Tokens& tokens) {
  ASSERT_TRUE(manager.cache(id).Reserve(tokens.size()));
  manager.cache(id).Advance(tokens.size());
  manager.Commit(id, tokens);
  manager.CheckInvariants();
}

Tokens Text(TokenId first, std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

TEST(SequenceManagerStoreTest, EachBlockGoesThereOnceUnderItsName) {
  TestBlockStore store;
  const auto manager = Make("full", store);
  const Tokens text = Text(0, 40);
  const SequenceId id = manager->Create(3);
  Grow(*manager, id, Text(0, 10));
  EXPECT_EQ(store.puts, 0u);  // None is complete.
  Grow(*manager, id, Text(10, 30));
  EXPECT_EQ(store.puts, 2u);
  base::Hash128 name = RootHash({7, 8}, 3);
  base::Hash128 witness;
  for (std::size_t block = 0; block < 2; ++block) {
    const Tokens own = Text(static_cast<TokenId>(16 * block), 16);
    name = ChainHash(name, own);
    witness = WitnessHash(witness, own);
    const auto found = store.blocks.find({name.low, name.high, 0});
    ASSERT_NE(found, store.blocks.end());
    const BlockIdentity& identity = found->second.first;
    EXPECT_EQ(identity.fingerprint, (base::Hash128{7, 8}));
    EXPECT_EQ(identity.witness, witness);
    EXPECT_EQ(identity.tokens, own);
    EXPECT_EQ(identity.bytes, Shape("full").block_bytes());
    EXPECT_EQ(identity.name, manager->IdentitiesOf(3, text)[block].name);
    EXPECT_EQ(identity.witness, manager->IdentitiesOf(3, text)[block].witness);
  }
  // Another sequence of the same text adds what is new only.
  const SequenceId twin = manager->Create(3);
  Grow(*manager, twin, Text(0, 32));
  Grow(*manager, twin, Text(500, 16));
  EXPECT_EQ(store.puts, 3u);
}

TEST(SequenceManagerStoreTest, AfterATruncationTheTextIsAnother) {
  TestBlockStore store;
  const auto manager = Make("full", store);
  const SequenceId id = manager->Create();
  Grow(*manager, id, Text(0, 48));
  manager->Truncate(id, 20);
  Grow(*manager, id, Text(900, 44));
  Tokens text = Text(0, 20);
  const Tokens rest = Text(900, 44);
  text.insert(text.end(), rest.begin(), rest.end());
  for (const BlockIdentity& expected : manager->IdentitiesOf(0, text)) {
    const auto found = store.blocks.find(TestBlockStore::KeyOf(expected));
    ASSERT_NE(found, store.blocks.end());
    EXPECT_EQ(found->second.first.witness, expected.witness);
    EXPECT_EQ(found->second.first.tokens, expected.tokens);
  }
  EXPECT_EQ(store.puts, 3u + 3u);
}

TEST(SequenceManagerStoreTest, AGroupsBlocksGoThereButNoTail) {
  for (const auto& [policy, groups] :
       {std::pair{"1:window=20", 2u}, {"k=int4,group=16", 1u}, {"dtype=f16", 1u}}) {
    TestBlockStore store;
    const auto manager = Make(policy, store);
    Grow(*manager, manager->Create(), Text(0, 64));
    std::vector<std::uint32_t> seen;
    for (const auto& [key, block] : store.blocks) seen.push_back(block.first.group);
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    EXPECT_EQ(seen.size(), groups) << policy;
    for (const std::uint32_t group : seen) {
      EXPECT_TRUE(Shape(policy).groups()[group].IsStored()) << policy;
    }
    EXPECT_EQ(store.puts, 4u * groups) << policy;
  }
}

TEST(SequenceManagerStoreTest, WithoutAnIndexThereIsNoStore) {
  TestBlockStore store;
  SequenceManagerOptions options;
  options.pool.budget_bytes = 64 * Shape("full").block_bytes();
  options.prefix_index = false;
  options.store = &store;
  const auto manager = SequenceManager::Make(Shape("full"), options).value();
  Grow(*manager, manager->Create(), Text(0, 64));
  EXPECT_EQ(manager->store(), nullptr);
  EXPECT_EQ(store.puts, 0u);
  EXPECT_EQ(manager->Export(0, Text(0, 64), store), 0u);
}

}  // namespace
}  // namespace kvasir::kvcache
