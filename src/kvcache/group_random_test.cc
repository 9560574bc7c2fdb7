// The sequence manager of many cache policies against its oracle under random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/env.h"
#include "base/faulty_env.h"
#include "base/test_directory.h"
#include "kvcache/group_test_oracle.h"

namespace kvasir::kvcache {
namespace {

struct Policy {
  const char* name;
  const char* spec;
  std::uint64_t least_block;  // Of whole groups of positions.
  bool drops;                 // Whether a truncation may find positions gone.
};

const Policy kPolicies[] = {
    {"Window", "window=5", 16, true},
    {"WindowOfOne", "window=1", 16, false},
    {"WindowOfABlock", "window=17", 16, true},
    {"WindowWithSinks", "window=20,sinks=3", 16, true},
    {"ManySinks", "window=40,sinks=20", 16, true},
    {"WindowBesideFull", "0:window=5", 16, true},
    {"FullBesideWindow", "1:window=33,sinks=17", 16, true},
    {"HeadsApart", "window=24;0.1:window=7,dtype=f16;1.0:full,dtype=bf16", 16, true},
    {"Channels", "k=int4,group=32,v=int8", 32, true},
    {"SmallGroups", "k=int4,group=16,v=int4", 16, true},
    {"ChannelsOfAWindow", "0:k=int4,group=16,v=f16,window=33;1:k=int4,group=32", 32, true},
    {"Rounded", "dtype=int8;1:k=int4,v=bf16", 16, false},
    {"RoundedWindows", "dtype=int4,window=9;1:dtype=int8,window=50,sinks=2", 16, true},
    {"Hidden", "0:store=hidden;1:store=hidden,window=24,sinks=2", 16, true},
    {"None", "0:store=none;1:window=9", 16, true},
    {"NothingAtAll", "store=none", 16, false},
};

void PrintTo(const Policy& policy, std::ostream* out) { *out << policy.spec; }

class GroupRandomTest : public testing::TestWithParam<std::tuple<Policy, std::uint64_t>> {
 protected:
  static CacheGeometry Shape(const Policy& policy, std::uint64_t block_tokens) {
    const PolicyShape shape = {.layers = 2, .kv_heads = 2, .head_dim = 3};
    return CacheGeometry::Make({.layers = 2,
                                .kv_heads = 2,
                                .head_dim = 3,
                                .block_tokens = block_tokens,
                                .hidden_dim = 5,
                                .policy = CachePolicy::Parse(policy.spec, shape).value()})
        .value();
  }

  // Few letters and many appends that begin alike, so that texts meet and part everywhere.
  static GroupOracle::Tokens SomeTokens(std::mt19937& random, std::size_t count) {
    GroupOracle::Tokens tokens(count, 1);
    if (random() % 3 == 0 && count > 0) tokens[random() % count] = 2 + random() % 2;
    return tokens;
  }

  // One operation on a random sequence. Returns whether the budget held it.
  static bool Operate(GroupOracle& world, std::mt19937& random, std::size_t block_tokens) {
    const std::size_t i = random() % world.size();
    const std::size_t j = (i + 1 + random() % (world.size() - 1)) % world.size();
    const std::size_t count =
        random() % 2 == 0 ? 1 + random() % 4 : 1 + random() % (3 * block_tokens + 2);
    switch (random() % 16) {
      case 0:
        world.Fork(i, j);
        return true;
      case 1:  // A little, as a draft that is not accepted.
        world.Truncate(i, world.length(i) - std::min<std::size_t>(world.length(i), random() % 9));
        return true;
      case 2:
        world.Truncate(i, random() % (world.length(i) + 1));
        return true;
      case 3:
      case 4:
        world.Finish(i, random() % 6 == 0 ? 7 : 0);
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

  // What the runs of one policy have seen.
  struct Visited {
    int refused = 0;
    std::uint64_t shortened = 0;
    std::uint64_t partial_hits = 0;
    std::uint64_t hit_tokens = 0;
    std::uint64_t evicted = 0;
    std::uint64_t dropped = 0;
    std::uint64_t swapped = 0;
    std::uint64_t faults = 0;
  };

  // Odd seeds have little room; 2 and 3 a placement seed and files; 2 few idle bytes; 3 a bound of
  // what is indexed, and files that fail; 4 no index.
  static void RunSeed(const CacheGeometry& geometry, std::uint32_t seed, Visited& visited) {
    std::mt19937 random(seed);
    const base::TestDirectory directory;
    base::FaultyEnv env(base::Env::Default());
    GroupOracleOptions options = {
        .budget_bytes = (seed % 2 == 1 ? 7 : 24) * geometry.block_bytes() + 100, .sequences = 4};
    if (seed == 2 || seed == 3) {
      options.placement_seed = seed;
      options.swap_env = &env;
      options.swap_directory = directory.path();
    }
    if (seed == 2) options.max_idle_bytes = 2 * geometry.block_bytes();
    if (seed == 3) options.max_indexed_tokens = 3 * geometry.block_tokens() + 5;
    options.swap_may_fail = seed == 3;
    options.prefix_index = seed != 4;
    GroupOracle world(geometry, options);
    for (int step = 0; step < 300; ++step) {
      if (seed == 3 && random() % 8 == 0) env.FailOperation(random() % 6);
      if (!Operate(world, random, geometry.block_tokens())) ++visited.refused;
      world.Check();
      ASSERT_EQ(world.problem(), "") << "seed " << seed << ", step " << step;
    }
    const ManagerReport report = world.manager().report();
    visited.shortened += world.shortened();
    visited.partial_hits += world.partial_hits();
    visited.hit_tokens += report.hit_tokens;
    visited.evicted += report.index.evicted;
    visited.dropped += report.dropped;
    visited.swapped += report.swapped;
    visited.faults += report.swap_write_faults + report.swap_read_faults;
  }
};

TEST_P(GroupRandomTest, CacheAgreesWithTheOracle) {
  const auto& [policy, block_tokens] = GetParam();
  const CacheGeometry geometry = Shape(policy, block_tokens);
  Visited visited;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunSeed(geometry, seed, visited)) << policy.spec;
  }
  EXPECT_GT(visited.dropped, 20u);
  EXPECT_GT(visited.swapped, 5u);
  EXPECT_GT(visited.faults, 0u);
  EXPECT_TRUE(visited.shortened > 0 || !policy.drops);
  if (geometry.groups().empty()) return;
  EXPECT_GT(visited.refused, 10);
  EXPECT_GT(visited.hit_tokens, 300u);
  EXPECT_GT(visited.partial_hits, 5u);
  EXPECT_GT(visited.evicted, 20u);
}

// Every block size that holds whole groups of positions.
std::vector<std::tuple<Policy, std::uint64_t>> Cases() {
  std::vector<std::tuple<Policy, std::uint64_t>> cases;
  for (const Policy& policy : kPolicies) {
    for (const std::uint64_t block_tokens : {16u, 32u, 48u, 64u}) {
      if (block_tokens % policy.least_block == 0) cases.emplace_back(policy, block_tokens);
    }
  }
  return cases;
}
std::string NameOf(const testing::TestParamInfo<GroupRandomTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "Blocks" +
         std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Policies, GroupRandomTest, testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace kvasir::kvcache
