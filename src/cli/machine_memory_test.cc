#include "cli/machine_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kNoLimit = UINT64_MAX;

class ControlGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    mount_ = fs::path(testing::TempDir()) / ("machine_memory_test_" + std::to_string(getpid()));
    fs::create_directories(mount_ / "memory/a/b");
    fs::create_directories(mount_ / "a/b");
  }
  void TearDown() override { fs::remove_all(mount_); }
  void Put(const char* file, const char* content) { std::ofstream(mount_ / file) << content; }
  fs::path mount_;
};

TEST_F(ControlGroupTest, TheLeastOfAGroupAndThoseAboveIt) {
  EXPECT_EQ(ControlGroupMemory("0::/a/b\n", mount_), kNoLimit);
  Put("a/b/memory.max", "max\n");
  EXPECT_EQ(ControlGroupMemory("0::/a/b\n", mount_), kNoLimit);
  Put("a/memory.max", "5000\n");
  EXPECT_EQ(ControlGroupMemory("0::/a/b\n", mount_), 5000u);
  Put("a/b/memory.max", "4000\n");
  EXPECT_EQ(ControlGroupMemory("0::/a/b\n", mount_), 4000u);
  EXPECT_EQ(ControlGroupMemory("0::/a\n", mount_), 5000u);
  EXPECT_EQ(ControlGroupMemory("0::/\n", mount_), kNoLimit);
  Put("memory.max", "3000\n");
  EXPECT_EQ(ControlGroupMemory("0::/\n", mount_), 3000u);
  EXPECT_EQ(ControlGroupMemory("0::/a/b\n", mount_), 3000u);
}

TEST_F(ControlGroupTest, VersionOneNamesItsControllers) {
  Put("memory/a/memory.limit_in_bytes", "700\n");
  Put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(ControlGroupMemory("4:cpu,memory:/a/b\n0::/\n", mount_), 700u);
  EXPECT_EQ(ControlGroupMemory("4:memory:/elsewhere\n", mount_), 9223372036854771712u);
  EXPECT_EQ(ControlGroupMemory("4:memoryless:/a\n", mount_), kNoLimit);
}

TEST_F(ControlGroupTest, AnyText) {
  Put("a/memory.max", "-\n");
  for (const char* text : {"", "\n", ":", "::", "0", "0:", "0::a", "0::/a/../../..", "0::/a"}) {
    EXPECT_EQ(ControlGroupMemory(text, mount_), kNoLimit) << text;
  }
}

TEST(MachineMemory, IsNoMoreThanTheProcessMayUse) {
  const std::uint64_t here = MachineMemory();
  EXPECT_GT(here, std::uint64_t{1} << 24);
  EXPECT_LE(here, static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  const auto limited = [] {
    const rlimit limit = {std::uint64_t{77} << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &limit);
    std::exit(MachineMemory() == std::uint64_t{77} << 20 ? 0 : 1);
  };
  EXPECT_EXIT(limited(), testing::ExitedWithCode(0), "");  // No machine has less than 77 MiB.
}

}  // namespace
}  // namespace kvasir::cli
