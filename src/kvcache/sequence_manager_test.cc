#include "kvcache/sequence_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/faulty_env.h"
#include "base/test_directory.h"
#include "kvcache/manager_test_oracle.h"

namespace kvasir::kvcache {
namespace {

using base::Env;
using Tokens = std::vector<TokenId>;

CacheGeometry Shape() {
  return CacheGeometry::Make({.layers = 2, .kv_heads = 1, .head_dim = 2}).value();
}

std::unique_ptr<SequenceManager> MakeManager(std::uint64_t blocks,
                                             SequenceManagerOptions options = {}) {
  options.pool.budget_bytes = blocks * Shape().block_bytes();
  return SequenceManager::Make(Shape(), options).value();
}

// `count` tokens of a text named by its number.
Tokens Text(TokenId number, std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = number * 1000 + static_cast<TokenId>(i);
  return tokens;
}

Tokens Slice(const Tokens& tokens, std::size_t from) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.end()};
}

// Grows the sequence by tokens; what is stored does not matter here.
void Grow(SequenceManager& manager, SequenceId id, const Tokens& tokens) {
  ASSERT_TRUE(manager.cache(id).Reserve(tokens.size()));
  manager.cache(id).Advance(tokens.size());
  manager.Commit(id, tokens);
  manager.CheckInvariants();
}

TEST(SequenceManagerTest, ABudgetBelowOneBlockIsRefused) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, Shape().block_bytes() - 1}) {
    const auto refused = SequenceManager::Make(Shape(), {.pool = {.budget_bytes = bytes}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, testing::HasSubstr(std::to_string(bytes)));
  }
}

TEST(SequenceManagerTest, AFinishedTextIsFoundAgain) {
  const auto manager = MakeManager(10);
  const SequenceId first = manager->Create();
  Grow(*manager, first, Text(1, 40));
  manager->Finish(first);
  EXPECT_EQ(manager->report().pool.idle_blocks, 2u);
  const SequenceId second = manager->Create();
  EXPECT_EQ(manager->TakePrefix(second, Text(1, 30)), 30u);
  EXPECT_EQ(manager->cache(second).length(), 30u);
  EXPECT_THAT(manager->tokens(second), testing::ElementsAreArray(Text(1, 30)));
  manager->CheckInvariants();
  EXPECT_EQ(manager->report().hit_tokens, 30u);
  // A cancelled sequence leaves its blocks too, whatever it was about to do.
  ASSERT_TRUE(manager->cache(second).Reserve(20));
  manager->Finish(second);
  EXPECT_EQ(manager->report().pool.live_blocks, 0u);
  const SequenceId other_tenant = manager->Create(/*tenant_salt=*/5);
  EXPECT_EQ(manager->TakePrefix(other_tenant, Text(1, 30)), 0u);
}

TEST(SequenceManagerTest, HitsAreCountedAndTold) {
  const auto manager = MakeManager(10);
  const SequenceId first = manager->Create();
  Grow(*manager, first, Text(1, 40));
  const BlockId block = manager->cache(first).blocks()[0];
  EXPECT_EQ(manager->hits(block), 0u);
  const SequenceId second = manager->Create();
  EXPECT_EQ(manager->TakePrefix(second, Text(1, 30)), 30u);
  EXPECT_EQ(manager->hits(block), 0u);  // It may still let go of them.
  manager->CountHits(second);
  EXPECT_EQ(manager->hits(block), 1u);
  EXPECT_EQ(manager->hits(manager->cache(first).blocks()[1]), 0u);  // Only its beginning fits.
  manager->Finish(first);
  EXPECT_EQ(manager->pool_references(block), 1u);
  manager->Finish(second);
  EXPECT_EQ(manager->pool_references(block), 0u);
  const auto told = manager->Indexed(0);
  ASSERT_EQ(told.size(), 2u);
  const bool in_order = !told[0].parent;
  const PrefixNodeReport& root = told[in_order ? 0 : 1];
  const PrefixNodeReport& leaf = told[in_order ? 1 : 0];
  EXPECT_EQ(root.blocks[0], block);
  EXPECT_EQ(root.hits, 1u);
  EXPECT_EQ(leaf.parent, root.id);
  EXPECT_TRUE(manager->Indexed(5).empty());
}

TEST(SequenceManagerTest, WithoutIndexNothingOutlivesItsSequence) {
  const auto manager = MakeManager(10, {.prefix_index = false});
  const SequenceId first = manager->Create();
  Grow(*manager, first, Text(1, 40));
  EXPECT_FALSE(manager->NextBlockName(manager->Create(), Text(1, 40)));
  manager->Finish(first);
  EXPECT_EQ(manager->report().pool.idle_blocks, 0u);
  const SequenceId second = manager->Create();
  EXPECT_EQ(manager->TakePrefix(second, Text(1, 30)), 0u);
  manager->CheckInvariants();
}

TEST(SequenceManagerTest, TextsComputedSideBySideBecomeShared) {
  const auto manager = MakeManager(10);
  const SequenceId a = manager->Create();
  const SequenceId b = manager->Create();
  Grow(*manager, a, Text(1, 20));
  Grow(*manager, b, Text(1, 35));
  EXPECT_EQ(manager->report(a).shared_bytes, Shape().block_bytes());
  EXPECT_EQ(manager->report().pool.live_blocks, 4u);
  EXPECT_EQ(manager->report().pool.saved_bytes(), Shape().block_bytes());
}

TEST(SequenceManagerTest, BlocksToComeAreNamedAlikeIfTheyAreAlike) {
  const auto manager = MakeManager(10);
  const SequenceId a = manager->Create();
  const SequenceId b = manager->Create();
  const SequenceId other_tenant = manager->Create(1);
  EXPECT_EQ(manager->NextBlockName(a, Text(1, 16)), manager->NextBlockName(b, Text(1, 30)));
  EXPECT_NE(manager->NextBlockName(a, Text(1, 16)), manager->NextBlockName(b, Text(2, 16)));
  EXPECT_NE(manager->NextBlockName(a, Text(1, 16)),
            manager->NextBlockName(other_tenant, Text(1, 16)));
  EXPECT_FALSE(manager->NextBlockName(a, Text(1, 15)));
  Grow(*manager, a, Text(1, 21));
  EXPECT_FALSE(manager->NextBlockName(a, Text(1, 31)));
  EXPECT_NE(manager->NextBlockName(a, Text(1, 32)), manager->NextBlockName(b, Text(1, 32)));
  EXPECT_EQ(manager->TakePrefix(b, Text(1, 20)), 16u);
  EXPECT_EQ(manager->NextBlockName(a, Text(1, 32)), manager->NextBlockName(b, Text(1, 32)));
}

TEST(SequenceManagerTest, DroppedIsComputedAgainSaveWhatTheIndexHas) {
  const auto manager = MakeManager(4);
  const SequenceId a = manager->Create();
  Grow(*manager, a, Text(1, 40));
  EXPECT_EQ(manager->Preempt(a, Preemption::kDrop), Preemption::kDrop);
  EXPECT_TRUE(manager->is_preempted(a));
  EXPECT_EQ(manager->report(a).held_bytes, 0u);
  EXPECT_EQ(manager->report().preempted, 1u);
  const SequenceId b = manager->Create();
  Grow(*manager, b, Text(2, 40));  // Takes one idle block of a.
  EXPECT_EQ(manager->Resume(a).value(), 16u);
  EXPECT_THAT(manager->pending(a), testing::ElementsAreArray(Slice(Text(1, 40), 16)));
  EXPECT_EQ(manager->report(a).pending, 24u);
  EXPECT_FALSE(manager->cache(a).Reserve(24));
  manager->Finish(b);
  const Tokens rest(manager->pending(a).begin(), manager->pending(a).end());
  Grow(*manager, a, rest);
  EXPECT_EQ(manager->pending(a).size(), 0u);
  EXPECT_EQ(manager->report().dropped, 1u);
}

// ------------------------------------------------------------------ swap

class SwapTest : public testing::Test {
 protected:
  // A world whose sequence 0 has 40 positions, of which nothing is cached once it is preempted and
  // sequence 1 has grown over its blocks.
  std::unique_ptr<ManagerOracle> Preempted(bool may_fail) {
    auto world = std::make_unique<ManagerOracle>(
        Shape(), ManagerOracleOptions{.capacity_blocks = 4,
                                      .sequences = 2,
                                      .swap_env = &env_,
                                      .swap_directory = directory_.path(),
                                      .swap_may_fail = may_fail});
    EXPECT_TRUE(world->Append(0, Text(1, 40)));
    world->Preempt(0, Preemption::kSwap);
    EXPECT_TRUE(world->Append(1, Text(2, 64)));
    Check(*world);
    return world;
  }
  static void Check(ManagerOracle& world) {
    world.Check();
    EXPECT_EQ(world.problem(), "");
  }
  std::string Path() const { return directory_.path() + "/sequence-0.kvswap"; }

  const base::TestDirectory directory_;
  base::FaultyEnv env_{Env::Default()};
};

TEST_F(SwapTest, ComesBackToTheSameBits) {
  const auto world = Preempted(false);
  EXPECT_TRUE(env_.Exists(Path()));
  EXPECT_EQ(world->manager().report().swapped_bytes,
            world->manager().report(SequenceId(0)).swapped_bytes);
  EXPECT_FALSE(world->Resume(0));  // No room: it stays where it is.
  EXPECT_TRUE(world->preempted(0));
  Check(*world);
  world->Finish(1);
  EXPECT_TRUE(world->Resume(0));
  EXPECT_EQ(world->length(0), 40u);
  Check(*world);
  const ManagerReport report = world->manager().report();
  EXPECT_EQ(report.swapped, 1u);
  EXPECT_EQ(report.swap_in_tokens, 40u);
  EXPECT_EQ(report.swapped_bytes, 0u);
  EXPECT_FALSE(env_.Exists(Path()));
  EXPECT_TRUE(world->Append(0, Text(3, 5)));
  Check(*world);
}

TEST_F(SwapTest, OnlyWhatTheIndexLostIsReadBack) {
  ManagerOracle world(Shape(), {.capacity_blocks = 8,
                                .sequences = 2,
                                .swap_env = &env_,
                                .swap_directory = directory_.path()});
  EXPECT_TRUE(world.Append(0, Text(1, 40)));
  world.Preempt(0, Preemption::kSwap);
  EXPECT_TRUE(world.Resume(0));
  EXPECT_EQ(world.manager().report().swap_in_tokens, 8u);
  EXPECT_EQ(world.manager().report().hit_tokens, 32u);
  Check(world);
  world.Truncate(0, 32);
  world.Preempt(0, Preemption::kSwap);
  EXPECT_TRUE(world.Resume(0));  // All of it was still cached.
  EXPECT_EQ(world.manager().report().swap_in_tokens, 8u);
  Check(world);
}

TEST_F(SwapTest, AFileThatIsNotBelievedIsComputedAgain) {
  for (const std::size_t byte : {std::size_t{0}, std::size_t{9}, std::size_t{60}, std::size_t{230},
                                 std::size_t{700}, std::size_t{1500}}) {
    const auto world = Preempted(true);
    world->Finish(1);
    {
      const auto file = Env::Default().Map(Path()).value();
      std::vector<std::byte> flipped(file->bytes().begin(), file->bytes().end());
      ASSERT_LT(byte, flipped.size());
      flipped[byte] ^= std::byte{4};
      const auto out = Env::Default().Create(Path()).value();
      ASSERT_TRUE(out->Append(flipped));
      ASSERT_TRUE(out->Close());
    }
    EXPECT_TRUE(world->Resume(0));
    EXPECT_EQ(world->length(0), 0u) << byte;
    Check(*world);
    EXPECT_EQ(world->manager().report().swap_read_faults, 1u) << byte;
    EXPECT_FALSE(env_.Exists(Path()));
    EXPECT_TRUE(world->Append(0, {}));  // What is pending.
    EXPECT_EQ(world->length(0), 40u);
    Check(*world);
  }
}

TEST_F(SwapTest, ATornOrVanishedFileIsComputedAgain) {
  for (int kind = 0; kind < 3; ++kind) {
    const auto world = Preempted(true);
    world->Finish(1);
    if (kind == 0) env_.TruncateReads(500);
    const bool removed = kind != 1 || env_.Remove(Path()).has_value();
    EXPECT_TRUE(removed);
    if (kind == 2) env_.FailOperation(0);
    EXPECT_TRUE(world->Resume(0));
    EXPECT_EQ(world->length(0), 0u);
    EXPECT_EQ(world->manager().report().swap_read_faults, 1u);
    env_.TruncateReads(std::numeric_limits<std::uint64_t>::max());
    EXPECT_TRUE(world->Append(0, {}));
    Check(*world);
  }
}

TEST_F(SwapTest, WhatCannotBeWrittenIsDropped) {
  for (std::uint64_t n = 0; n < 10; ++n) {
    env_.FailOperation(n);
    const auto world = Preempted(true);
    if (n < 9) {  // Create, twice each of head and three blocks, close: ten operations.
      EXPECT_EQ(world->manager().report().swap_write_faults, 1u) << n;
      EXPECT_FALSE(env_.Exists(Path())) << n;
    }
    world->Finish(1);
    EXPECT_TRUE(world->Resume(0));
    EXPECT_TRUE(world->Append(0, Text(4, 2)));
    EXPECT_EQ(world->length(0), 42u);
    Check(*world);
  }
  env_.LimitBytes(700);
  const auto full = Preempted(true);
  EXPECT_EQ(full->manager().report().swap_write_faults, 1u);
  EXPECT_EQ(full->manager().report().dropped, 1u);
  EXPECT_FALSE(env_.Exists(Path()));
}

TEST_F(SwapTest, FilesGoWithTheirSequences) {
  auto world = Preempted(false);
  world->Finish(0);
  EXPECT_FALSE(env_.Exists(Path()));
  Check(*world);
  world = Preempted(false);
  EXPECT_TRUE(env_.Exists(Path()));
  world.reset();
  EXPECT_FALSE(env_.Exists(Path()));
}

TEST_F(SwapTest, WithoutADirectoryOrContentsItDrops) {
  const auto manager = MakeManager(4);
  const SequenceId id = manager->Create();
  Grow(*manager, id, Text(1, 20));
  EXPECT_EQ(manager->Preempt(id, Preemption::kSwap), Preemption::kDrop);
  const auto other = MakeManager(4, {.swap_env = &env_, .swap_directory = directory_.path()});
  const SequenceId empty = other->Create();
  EXPECT_EQ(other->Preempt(empty, Preemption::kSwap), Preemption::kDrop);
  EXPECT_EQ(other->Resume(empty).value(), 0u);
}

// ------------------------------------------------------------------ accounting

// Held but empty slots at block 16, on lengths from 1 to 1,023: 7.5 slots of 512 on average.
TEST(SequenceManagerTest, WasteIsBelowTwoPercent) {
  const auto manager = MakeManager(100'000);
  std::mt19937 random(11);
  std::uint64_t tokens = 0;
  std::uint64_t waste = 0;
  for (TokenId i = 0; i < 500; ++i) {
    const std::size_t length = 1 + random() % 1023;
    const SequenceId id = manager->Create();
    const Tokens text = Text(i, length);
    ASSERT_TRUE(manager->cache(id).Reserve(length));
    manager->cache(id).Advance(length);
    manager->Commit(id, text);
    tokens += length;
    waste += (16 - length % 16) % 16;
  }
  const ManagerReport report = manager->report();
  EXPECT_NEAR(static_cast<double>(tokens) / 500, 512, 30);
  EXPECT_EQ(report.waste_bytes, waste * Shape().bytes_per_token());
  EXPECT_EQ(report.pool.live_bytes, (tokens + waste) * Shape().bytes_per_token());
  EXPECT_LE(report.WasteShare(), 0.02);
  EXPECT_EQ(MakeManager(1)->report().WasteShare(), 0.0);
}

TEST(SequenceManagerTest, WasteOfASharedBlockCountsOnce) {
  const auto manager = MakeManager(10);
  const SequenceId a = manager->Create();
  Grow(*manager, a, Text(1, 20));
  const SequenceId b = manager->Fork(a);
  manager->CheckInvariants();
  EXPECT_EQ(manager->report().waste_bytes, 12 * Shape().bytes_per_token());
  EXPECT_EQ(manager->report(b).waste_bytes, 12 * Shape().bytes_per_token());
  Grow(*manager, b, Text(2, 4));  // Copied.
  EXPECT_EQ(manager->report().waste_bytes, (12 + 8) * Shape().bytes_per_token());
  ASSERT_TRUE(manager->cache(a).Reserve(30));  // Reserved is empty too.
  EXPECT_EQ(manager->report().waste_bytes, (44 + 8) * Shape().bytes_per_token());
}

// ------------------------------------------------------------------ log-probabilities

PromptLogProbs Guess(double logprob) {
  return {.logprob = logprob, .best = {{.id = 1, .logprob = -0.1, .prob = 0.9}}};
}

TEST(SequenceManagerTest, LogProbabilitiesAreFoundWithTheirBlocks) {
  const auto manager = MakeManager(10);
  const SequenceId a = manager->Create();
  Grow(*manager, a, Text(1, 10));
  EXPECT_EQ(manager->LogProbs(a, 3), nullptr);
  manager->KeepLogProbs(a, 3, Guess(-3));  // Before its block is complete,
  Grow(*manager, a, Slice(Text(1, 40), 10));
  manager->KeepLogProbs(a, 20, Guess(-20));  // after,
  manager->KeepLogProbs(a, 35, Guess(-35));  // and in one that never is.
  for (const std::size_t p : {3u, 20u, 35u}) {
    ASSERT_NE(manager->LogProbs(a, p), nullptr) << p;
    EXPECT_EQ(manager->LogProbs(a, p)->logprob, -static_cast<double>(p));
  }
  manager->CheckInvariants();
  const SequenceId twin = manager->Fork(a);
  EXPECT_EQ(manager->LogProbs(twin, 35)->logprob, -35);
  manager->Finish(twin);
  manager->Finish(a);

  const SequenceId b = manager->Create();
  EXPECT_EQ(manager->TakePrefix(b, Text(1, 30)), 30u);  // Ends inside the second block.
  EXPECT_EQ(manager->LogProbs(b, 3)->logprob, -3);
  EXPECT_EQ(manager->LogProbs(b, 20)->best.front().prob, 0.9);
  Grow(*manager, b, Text(7, 5));  // Which is copied.
  EXPECT_EQ(manager->LogProbs(b, 20)->logprob, -20);
  EXPECT_EQ(manager->LogProbs(b, 21), nullptr);
  manager->Preempt(b, Preemption::kDrop);
  ASSERT_TRUE(manager->Resume(b));
  EXPECT_EQ(manager->LogProbs(b, 20)->logprob, -20);
  manager->Truncate(b, 18);
  EXPECT_EQ(manager->LogProbs(b, 3)->logprob, -3);
  manager->CheckInvariants();
  EXPECT_DEATH((void)manager->LogProbs(b, 18), "position < ");
  EXPECT_DEATH(manager->KeepLogProbs(b, 18, {}), "position < ");
}

TEST(SequenceManagerTest, TruncatingIntoABlockKeepsItsLogProbabilities) {
  const auto manager = MakeManager(2);  // No room for a copy: the index gives the block up.
  const SequenceId a = manager->Create();
  Grow(*manager, a, Text(1, 32));
  manager->KeepLogProbs(a, 17, Guess(-17));
  manager->KeepLogProbs(a, 25, Guess(-25));
  manager->Truncate(a, 20);
  Grow(*manager, a, Text(2, 7));
  EXPECT_EQ(manager->LogProbs(a, 17)->logprob, -17);
  EXPECT_EQ(manager->LogProbs(a, 25), nullptr);
}

// ------------------------------------------------------------------ misuse

TEST(SequenceManagerTest, IdsAreReusedAndStaleOnesAreSeen) {
  const auto manager = MakeManager(4);
  const SequenceId a = manager->Create();
  manager->Finish(a);
  EXPECT_DEATH(manager->Finish(a), "has_value");
  EXPECT_DEATH((void)manager->cache(SequenceId(9)), "entries_.size");
  EXPECT_EQ(manager->Create(), a);
}

TEST(SequenceManagerTest, ProgrammersErrors) {
  const auto manager = MakeManager(4);
  const SequenceId a = manager->Create();
  Grow(*manager, a, Text(1, 20));
  EXPECT_DEATH(manager->Commit(a, Text(1, 1)), "committed");
  EXPECT_DEATH(manager->Truncate(a, 21), "length <= ");
  EXPECT_DEATH((void)manager->TakePrefix(a, Text(2, 20)), "equal");
  EXPECT_DEATH((void)manager->TakePrefix(a, Text(1, 20)), "entries_ == 0");
  EXPECT_DEATH((void)manager->NextBlockName(a, Text(2, 32)), "equal");
  EXPECT_DEATH((void)manager->Resume(a), "preempted");
  ASSERT_TRUE(manager->cache(a).Reserve(1));
  manager->cache(a).Advance(1);
  EXPECT_DEATH(manager->Preempt(a, Preemption::kDrop), "committed");
  EXPECT_DEATH((void)manager->Fork(a), "committed");
  manager->Commit(a, Text(3, 1));
  manager->Preempt(a, Preemption::kDrop);
  EXPECT_DEATH((void)manager->cache(a), "preempted");
  EXPECT_DEATH((void)manager->Fork(a), "preempted");
  ASSERT_TRUE(manager->Resume(a));
  ASSERT_TRUE(manager->cache(a).Reserve(1));
  manager->cache(a).Advance(1);
  EXPECT_DEATH(manager->Commit(a, Text(9, 1)), "equal");  // Not the pending token.
}

}  // namespace
}  // namespace kvasir::kvcache
