#include "eval/memory_env.h"

#include <gtest/gtest.h>

#include <string_view>

namespace kvasir::eval {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(MemoryEnvTest, FilesAreReadAsWritten) {
  MemoryEnv env;
  EXPECT_FALSE(env.Exists("a"));
  EXPECT_EQ(env.Map("a").error().code, base::ErrorCode::kIo);
  EXPECT_TRUE(env.MakeDirectories("d"));
  const auto file = env.Create("d/a").value();
  EXPECT_TRUE(file->Append(Bytes("one")));
  EXPECT_TRUE(file->Append(Bytes(" two")));
  EXPECT_TRUE(file->Sync());
  EXPECT_TRUE(file->Close());
  EXPECT_EQ(env.Map("d/a").value()->text(), "one two");
  EXPECT_TRUE(env.Create("d/a"));  // Truncates.
  EXPECT_EQ(env.Map("d/a").value()->text(), "");
}

TEST(MemoryEnvTest, FilesAreRenamedAndRemoved) {
  MemoryEnv env;
  ASSERT_TRUE(env.Create("a").value()->Append(Bytes("x")));
  EXPECT_TRUE(env.Rename("a", "b"));
  EXPECT_FALSE(env.Exists("a"));
  EXPECT_FALSE(env.Rename("a", "c"));
  const auto open = env.Map("b").value();
  EXPECT_TRUE(env.Remove("b"));
  EXPECT_FALSE(env.Remove("b"));
  EXPECT_FALSE(env.Exists("b"));
  EXPECT_EQ(open->text(), "x");
}

}  // namespace
}  // namespace kvasir::eval
