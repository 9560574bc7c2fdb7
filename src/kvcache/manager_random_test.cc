// The sequence manager against its oracle under random operations, for every block size.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/faulty_env.h"
#include "base/test_directory.h"
#include "kvcache/manager_test_oracle.h"

namespace kvasir::kvcache {
namespace {

class ManagerRandomTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  // Few letters and many appends that begin alike, so that texts meet and part everywhere.
  static ManagerOracle::Tokens SomeTokens(std::mt19937& random, std::size_t count) {
    ManagerOracle::Tokens tokens(count, 1);
    if (random() % 3 == 0 && count > 0) tokens[random() % count] = 2 + random() % 2;
    return tokens;
  }

  // One operation on a random sequence. Returns whether the budget held it.
  static bool Operate(ManagerOracle& world, std::mt19937& random, std::size_t block_tokens) {
    const std::size_t i = random() % world.size();
    const std::size_t j = (i + 1 + random() % (world.size() - 1)) % world.size();
    const std::size_t count =
        random() % 2 == 0 ? 1 + random() % 4 : 1 + random() % (2 * block_tokens + 2);
    switch (random() % 16) {
      case 0:
        world.Fork(i, j);
        return true;
      case 1:
      case 2:
        world.Truncate(i, world.length(i) == 0 ? 0 : random() % (world.length(i) + 1));
        return true;
      case 3:
      case 4:
        world.Finish(i);
        return true;
      case 5:
        world.Preempt(i, random() % 2 == 0 ? Preemption::kDrop : Preemption::kSwap);
        return true;
      case 6:
      case 7:
        return world.Resume(i);
      case 8:
        return world.FailedStep(i, count);
      default:
        return world.Append(i, SomeTokens(random, count));
    }
  }
};

TEST_P(ManagerRandomTest, CacheAgreesWithTheOracle) {
  const std::uint64_t block_tokens = GetParam();
  const CacheGeometry geometry =
      CacheGeometry::Make({.layers = 2, .kv_heads = 1, .head_dim = 2, .block_tokens = block_tokens})
          .value();
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const base::TestDirectory directory;
    ManagerOracleOptions options = {.capacity_blocks = 9, .sequences = 4};
    if (seed % 2 == 0) options.placement_seed = seed;
    base::FaultyEnv env(base::Env::Default());
    if (seed >= 3) {
      options.swap_env = &env;
      options.swap_directory = directory.path();
      options.swap_may_fail = seed == 4;
    }
    ManagerOracle world(geometry, options);
    int refused = 0;
    for (int step = 0; step < 500; ++step) {
      if (seed == 4 && random() % 8 == 0) env.FailOperation(random() % 6);
      if (!Operate(world, random, block_tokens)) ++refused;
      world.Check();
      ASSERT_EQ(world.problem(), "") << "step " << step;
    }
    // The test has been where it should be.
    const ManagerReport report = world.manager().report();
    EXPECT_GT(refused, 5);
    EXPECT_GT(report.hit_tokens, 100u);
    EXPECT_GT(report.index.evicted, 5u);
    EXPECT_GT(report.dropped, 5u);
    if (seed >= 3) {
      EXPECT_GT(report.swapped, 0u);
    }
    if (seed == 3) {
      EXPECT_EQ(report.swap_write_faults + report.swap_read_faults, 0u);
    }
  }
}

std::vector<std::uint64_t> AllBlockSizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 16; size <= kMaxBlockTokens; size += 16) sizes.push_back(size);
  return sizes;
}
INSTANTIATE_TEST_SUITE_P(BlockSizes, ManagerRandomTest, testing::ValuesIn(AllBlockSizes()));

}  // namespace
}  // namespace kvasir::kvcache
