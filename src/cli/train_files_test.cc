#include "cli/train_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

class TrainFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = fs::path(testing::TempDir()) / ("train_files_test_" + std::to_string(getpid()));
    fs::create_directories(home_ / "folder");
    for (const char* name : {"text", "val"}) std::ofstream(home_ / name) << name;
    fs::create_symlink(home_ / "text", home_ / "link");
    fs::create_symlink("none", home_ / "dangling");
    fs::create_hard_link(home_ / "text", home_ / "hard");
  }
  void TearDown() override { fs::remove_all(home_); }
  std::string In(const std::string& name) const {
    return name.empty() || name[0] == '/' ? name : (home_ / name).string();
  }
  // The message, or nothing.
  std::string Distinct(const std::string& output, const std::string& log,
                       const std::string& checkpoint = "") const {
    const auto checked = CheckDistinct({.texts = {In("val"), In("text")},
                                        .held_out = In("val"),
                                        .output = In(output),
                                        .log = In(log),
                                        .checkpoint = In(checkpoint)});
    if (checked) return "";
    EXPECT_EQ(checked.error().code, base::ErrorCode::kUsage);
    return checked.error().message;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(home_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path home_;
};

TEST_F(TrainFilesTest, InputsMayCoincideOutputsNot) {
  EXPECT_EQ(Distinct("m", "m.log", "c"), "");
  EXPECT_EQ(Distinct("c/m", "c/m.log", "c"), "");
  EXPECT_EQ(Distinct("/dev/null", "/dev/null"), "");  // Takes both.
  for (const char* input : {"text", "link", "hard", "val", "folder/../text", "./folder/../link"}) {
    EXPECT_NE(Distinct(input, "m.log").find("which it would overwrite"), std::string::npos);
    EXPECT_NE(Distinct("m", input).find("--log"), std::string::npos) << input;
    EXPECT_NE(Distinct("m", "m.log", input).find("--checkpoint"), std::string::npos) << input;
  }
  for (const char* log : {"m", "folder/../m", "c/last.kvckpt", "c"}) {
    EXPECT_NE(Distinct("m", log, "c").find("which it would replace"), std::string::npos) << log;
  }
  EXPECT_NE(Distinct("none", "dangling"), "");  // Nothing is there yet, but would be.
  fs::create_symlink("circle", home_ / "circle");
  EXPECT_EQ(Distinct("circle", "m.log"), "");
}

TEST_F(TrainFilesTest, WritableMeansAFileCanBePutThere) {
  const auto before = Names();
  for (const char* path : {"new", "text", "link", "dangling"}) {
    EXPECT_TRUE(CheckWritable(In(path)).has_value()) << path;
  }
  for (const auto& [path, why] : {std::pair<std::string, std::string>{"folder", "it is a folder"},
                                  {"no/file", "No such file"},
                                  {"text/file", "Not a directory"},
                                  {"/dev/null", "no regular file"},
                                  {std::string(253, 'm'), "too long"}}) {
    const auto checked = CheckWritable(In(path));
    ASSERT_FALSE(checked.has_value()) << path;
    EXPECT_EQ(checked.error().code, base::ErrorCode::kIo);
    EXPECT_EQ(checked.error().message.find("cannot write '" + In(path) + "': "), 0u);
    EXPECT_NE(checked.error().message.find(why), std::string::npos) << checked.error().message;
  }
  EXPECT_EQ(Names(), before);
  EXPECT_EQ(fs::file_size(home_ / "text"), 4u);
}

TEST_F(TrainFilesTest, OnlyLeftoversOfEndedProcessesGo) {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  const std::string dead = std::to_string(ended), alive = std::to_string(getpid());
  const auto before = Names();
  std::vector<std::string> kept = {"m.tmp" + alive, "m.tmp" + dead + "x", "m.tmp",       "m.tmp-1",
                                   "m.tmp0",        "m.tmp99999999999",   "n.tmp" + dead};
  for (const std::string& name : kept) std::ofstream(home_ / name) << name;
  std::ofstream(home_ / ("m.tmp" + dead)) << "half";
  RemoveStaleTemporaries(In("m"));
  kept.insert(kept.end(), before.begin(), before.end());
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(Names(), kept);
  RemoveStaleTemporaries(In("no/folder"));  // Nothing to do is no fault.
}

}  // namespace
}  // namespace kvasir::cli
