#include "base/installed_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kvasir::base {
namespace {

namespace fs = std::filesystem;

TEST(InstalledFileTest, IsFoundBesideTheProgramAndAboveIt) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string name = "installed_file_test.txt";
  const fs::path shared = folder / "share" / "kvasir";
  fs::create_directories(shared);
  std::ofstream(shared / name) << "x";
  EXPECT_EQ(FindInstalled(name), (shared / name).string());
  std::ofstream(folder / name) << "x";
  EXPECT_EQ(FindInstalled(name), (folder / name).string());
  fs::remove(folder / name);
  fs::remove(shared / name);
  EXPECT_EQ(FindInstalled(name), std::nullopt);
}

TEST(InstalledFileTest, ThisProgramIsFoundByItsOwnName) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(FindInstalled(program.filename().string()), program.string());
}

}  // namespace
}  // namespace kvasir::base
