// The cache against the oracle under random operations.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <tuple>

#include "kvcache/cache_oracle.h"

namespace kvasir::kvcache {
namespace {

// Block size; whether placement is shuffled; whether entries are latents.
class RandomOperationsTest : public testing::TestWithParam<std::tuple<std::uint64_t, bool, bool>> {
};

TEST_P(RandomOperationsTest, CacheAgreesWithTheOracle) {
  const auto [block_tokens, shuffled, latent] = GetParam();
  CacheGeometryOptions shape = {.layers = 2, .block_tokens = block_tokens};
  if (latent) {
    shape.latent_dim = 5;
    shape.rope_dim = 2;
  } else {
    shape.kv_heads = 2;
    shape.head_dim = 3;
  }
  const CacheGeometry geometry = CacheGeometry::Make(shape).value();
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    BlockPoolOptions options = {.budget_bytes = 12 * geometry.block_bytes()};
    if (shuffled) options.placement_seed = seed;
    CacheOracle world(geometry, options, 5);
    int refused = 0;
    int copied = 0;
    for (int step = 0; step < 600; ++step) {
      const std::size_t i = random() % world.size();
      const std::size_t j = (i + 1 + random() % (world.size() - 1)) % world.size();
      // Mostly short appends; some long ones, to reach whole blocks and the budget.
      const std::size_t count =
          random() % 2 == 0 ? random() % 4 : random() % (2 * block_tokens + 2);
      const std::uint64_t live = world.live_blocks();
      const std::size_t held = world.blocks(i);
      switch (random() % 10) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
          if (!world.Append(i, count)) ++refused;
          if (world.live_blocks() - live > world.blocks(i) - held) ++copied;
          break;
        case 5:
          world.FailedStep(i, count);
          break;
        case 6:
          world.Fork(i, j);
          break;
        case 7:
          world.Truncate(i, random() % (world.length(i) + 1));
          break;
        case 8:
          random() % 2 == 0 ? world.Truncate(i, world.length(i)) : world.Fork(i, j);
          break;
        default:
          random() % 2 == 0 ? world.Reset(i) : world.Destroy(i);
          break;
      }
      world.Check();
      if (testing::Test::HasFailure()) FAIL() << "step " << step;
    }
    EXPECT_GT(refused, 5);  // The test has been where it should be.
    EXPECT_GT(copied, 5);
    for (std::size_t i = 0; i < world.size(); ++i) world.Reset(i);
    EXPECT_EQ(world.pool().stats().references, 0u);
    EXPECT_EQ(world.pool().stats().live_blocks, 0u);
    EXPECT_LE(world.pool().stats().peak_live_bytes, 12 * world.pool().geometry().block_bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(BlockSizes, RandomOperationsTest,
                         testing::Combine(testing::Values(16, 32, 64, 256), testing::Bool(),
                                          testing::Bool()));

}  // namespace
}  // namespace kvasir::kvcache
