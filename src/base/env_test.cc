#include "base/env.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/faulty_env.h"

namespace kvasir::base {
namespace {

class EnvTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/env_test_" + std::to_string(getpid());
    ASSERT_TRUE(Env::Default().MakeDirectories(directory_).has_value());
    path_ = directory_ + "/file";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Read() { return std::string(Env::Default().Map(path_).value()->text()); }
  std::size_t FilesThere() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  std::string directory_, path_;
};

TEST_F(EnvTest, WritesAndMaps) {
  ASSERT_TRUE(WriteFileAtomic(Env::Default(), path_, "hello").has_value());
  EXPECT_EQ(Read(), "hello");
  ASSERT_TRUE(WriteFileAtomic(Env::Default(), path_, "").has_value());
  EXPECT_EQ(Read(), "");
}

TEST_F(EnvTest, ErrorsNameThePath) {
  for (const std::string& path : {directory_ + "/none", directory_}) {
    const auto result = Env::Default().Map(path);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
    EXPECT_NE(result.error().message.find(path), std::string::npos);
  }
}

// A pipe that nobody writes to, too: no waiting for a writer.
TEST_F(EnvTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/null"), directory_}) {
    const auto result = Env::Default().Map(path);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "cannot read '" + path + "': not a regular file");
  }
}

// The caller's name, not that of the file that is written beside it.
TEST_F(EnvTest, AtomicWriteNamesThePathItWasGiven) {
  for (const std::string& path : {directory_ + "/none/file", directory_}) {
    const auto written = WriteFileAtomic(Env::Default(), path, "x");
    ASSERT_FALSE(written.has_value());
    EXPECT_NE(written.error().message.find("'" + path + "'"), std::string::npos)
        << written.error().message;
    EXPECT_EQ(written.error().message.find(".tmp"), std::string::npos);
  }
}

// At whichever operation a write fails, the old file stays and no litter is left.
TEST_F(EnvTest, AtomicWriteKeepsTheOldFileOnEveryFault) {
  ASSERT_TRUE(WriteFileAtomic(Env::Default(), path_, "old").has_value());
  FaultyEnv counting(Env::Default());
  ASSERT_TRUE(WriteFileAtomic(counting, path_, "old").has_value());
  ASSERT_GE(counting.operations(), 5u);
  for (std::uint64_t i = 0; i < counting.operations(); ++i) {
    FaultyEnv faulty(Env::Default());
    faulty.FailOperation(i);
    EXPECT_FALSE(WriteFileAtomic(faulty, path_, "new").has_value());
    EXPECT_EQ(Read(), "old");
    EXPECT_EQ(FilesThere(), 1u);
  }
  FaultyEnv full(Env::Default());
  full.LimitBytes(2);
  EXPECT_FALSE(WriteFileAtomic(full, path_, "new").has_value());
  EXPECT_EQ(Read(), "old");
}

TEST_F(EnvTest, FullDeviceIsAnError) {
  if (!Env::Default().Exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto result = WriteFileAtomic(Env::Default(), "/dev/full", "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::base
