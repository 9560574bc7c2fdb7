#include "base/thread_team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace kvasir::base {
namespace {

TEST(SplitEvenly, CoversEveryIndexOnceInOrder) {
  for (std::size_t count : {0u, 1u, 2u, 7u, 16u, 433u}) {
    for (std::size_t parts = 1; parts <= 9; ++parts) {
      std::size_t expected = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const IndexRange range = SplitEvenly(count, parts, i);
        EXPECT_EQ(range.begin, expected);
        EXPECT_LE(range.size(), count / parts + 1);
        expected = range.end;
      }
      EXPECT_EQ(expected, count);
    }
  }
}

// A system that starts no more threads is an Error, not the end of the process. Sanitizers need the
// addresses that the limit takes away.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadTeamDeathTest, ThreadsThatCannotBeStartedAreAnError) {
  const auto make_too_many = [] {
    const rlimit limit = {std::size_t{1} << 30, std::size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto team = ThreadTeam::Make(5000);  // Each reserves a stack of some MiB.
    if (!team) std::fputs(team.error().message.c_str(), stderr);
    std::exit(team.has_value() || team.error().code != ErrorCode::kExhausted ? 1 : 0);
  };
  EXPECT_EXIT(make_too_many(), testing::ExitedWithCode(0), "cannot start 5000 threads: ");
  EXPECT_EQ(ThreadTeam::Make(3).value()->size(), 3u);
}
#endif

class ThreadTeamSizes : public testing::TestWithParam<std::size_t> {};

TEST_P(ThreadTeamSizes, EveryMemberRunsOnceARegion) {
  ThreadTeam team(GetParam());
  std::vector<int> runs(team.size(), 0);
  for (int region = 0; region < 200; ++region) {
    team.Run([&](Member& member) { ++runs[member.index()]; });
  }
  for (int count : runs) EXPECT_EQ(count, 200);
}

TEST_P(ThreadTeamSizes, BarrierMakesWritesVisible) {
  ThreadTeam team(GetParam());
  std::vector<int> slots(team.size(), 0);
  std::atomic<int> wrong{0};
  team.Run([&](Member& member) {
    for (int round = 1; round <= 300; ++round) {
      slots[member.index()] = round;
      member.Barrier();
      for (int slot : slots) {
        if (slot != round) ++wrong;
      }
      member.Barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamSizes, testing::Values(1, 2, 3, 8));

TEST(ThreadTeam, PhysicalCoresIsAtLeastOne) { EXPECT_GE(ThreadTeam::PhysicalCores(), 1u); }

}  // namespace
}  // namespace kvasir::base
