// Sequences whose entries are latents: views, bytes, and that the kernels mean the same layout.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/latent_attention.h"
#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"

namespace kvasir::kvcache {
namespace {

constexpr std::size_t kLayers = 3;
constexpr std::size_t kLatent = 5;
constexpr std::size_t kRope = 2;
constexpr std::size_t kWidth = kLatent + kRope;

CacheGeometry Shape(std::uint64_t block_tokens) {
  return CacheGeometry::Make({.layers = kLayers,
                              .block_tokens = block_tokens,
                              .latent_dim = kLatent,
                              .rope_dim = kRope})
      .value();
}

std::unique_ptr<BlockPool> Pool(std::uint64_t block_tokens) {
  const CacheGeometry shape = Shape(block_tokens);
  return BlockPool::Make(shape, {.budget_bytes = 64 * shape.block_bytes(), .placement_seed = 5})
      .value();
}

std::vector<float> Row(std::size_t layer, std::size_t position, float branch) {
  std::vector<float> row(kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    row[i] = branch + static_cast<float>((layer * 1000 + position) * kWidth + i);
  }
  return row;
}

// One step, as a model does it.
void Step(CachedSequence& sequence, std::size_t count, float branch) {
  ASSERT_TRUE(sequence.Reserve(count).has_value());
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const kernels::LatentView view = sequence.Latents(layer);
    for (std::size_t p = sequence.length(); p < sequence.length() + count; ++p) {
      const std::vector<float> row = Row(layer, p, branch);
      kernels::StoreLatent(view, p, row.data(), row.data() + kLatent);
    }
  }
  sequence.Advance(count);
}

void ExpectRows(const CachedSequence& sequence, std::size_t begin, std::size_t end, float branch) {
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t p = begin; p < end; ++p) {
      const float* row = sequence.Latents(layer).Row(p);
      ASSERT_EQ(std::vector<float>(row, row + kWidth), Row(layer, p, branch)) << layer << " " << p;
    }
  }
}

class LatentSequenceTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(BlockSizes, LatentSequenceTest, testing::Values(16, 32, 48, 256));

TEST_P(LatentSequenceTest, StoredRowsComeBackThroughForksAndTruncation) {
  const auto pool = Pool(GetParam());
  CachedSequence trunk(*pool);
  Step(trunk, 37, 1);
  Step(trunk, 1, 1);
  Step(trunk, 3, 1);
  CachedSequence branch = trunk.Fork();
  branch.Truncate(20);
  Step(branch, 30, 0.5f);
  Step(trunk, 5, 1);
  ExpectRows(trunk, 0, 46, 1);
  ExpectRows(branch, 0, 20, 1);
  ExpectRows(branch, 20, 50, 0.5f);
  trunk.CheckInvariants();
  branch.CheckInvariants();
  pool->CheckInvariants();
}

TEST_P(LatentSequenceTest, HoldsOneRowAPositionAndLayer) {
  const auto pool = Pool(GetParam());
  CachedSequence sequence(*pool);
  Step(sequence, 17, 1);
  const std::uint64_t blocks = pool->geometry().BlocksFor(17);
  const std::uint64_t slots = blocks * GetParam();
  EXPECT_EQ(sequence.held_bytes(), slots * kWidth * kLayers * 4);
  EXPECT_EQ(sequence.held_bytes(0), slots * kWidth * 4);
  EXPECT_EQ(sequence.waste_bytes(), (slots - 17) * kWidth * kLayers * 4);
  EXPECT_EQ(sequence.shared_bytes(), 0u);
  const CachedSequence fork = sequence.Fork();
  EXPECT_EQ(sequence.shared_bytes(), sequence.held_bytes());
  EXPECT_EQ(pool->stats().live_bytes, sequence.held_bytes());
  EXPECT_EQ(pool->stats().saved_bytes(), sequence.held_bytes());
}

TEST(LatentSequenceViewTest, SaysWhereRowsLie) {
  const auto pool = Pool(32);
  CachedSequence sequence(*pool);
  ASSERT_TRUE(sequence.Reserve(33).has_value());
  const kernels::LatentView view = sequence.Latents(2);
  EXPECT_EQ(view.latent_dim, kLatent);
  EXPECT_EQ(view.rope_dim, kRope);
  EXPECT_EQ(view.width(), kWidth);
  EXPECT_EQ(view.block_tokens, 32u);
  EXPECT_EQ(view.offset, 2u * 32 * kWidth * 4);
  EXPECT_EQ(view.blocks[1], pool->data(sequence.blocks()[1]));
  EXPECT_EQ(reinterpret_cast<std::byte*>(view.Row(32)), view.blocks[1] + view.offset);
  EXPECT_EQ(view.Row(31), view.Row(0) + 31 * kWidth);
}

TEST(LatentSequenceDeathTest, TheOtherKindsView) {
  const auto pool = Pool(16);
  const CachedSequence sequence(*pool);
  EXPECT_DEATH(sequence.View(0), "is_latent");
  EXPECT_DEATH(sequence.Latents(kLayers), "layer < layers_");
  const CacheGeometry plain =
      CacheGeometry::Make({.layers = 1, .kv_heads = 1, .head_dim = 2}).value();
  const auto other = BlockPool::Make(plain, {.budget_bytes = plain.block_bytes()}).value();
  EXPECT_DEATH(CachedSequence(*other).Latents(0), "is_latent");
}

}  // namespace
}  // namespace kvasir::kvcache
