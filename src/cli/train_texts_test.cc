#include "cli/train_texts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

class TrainTextsTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = fs::path(testing::TempDir()) / ("train_texts_test_" + std::to_string(getpid()));
    fs::create_directories(home_ / "book");
  }
  void TearDown() override { fs::remove_all(home_); }
  std::string Put(const std::string& name, const std::string& content = "text") {
    fs::create_directories((home_ / name).parent_path());
    std::ofstream(home_ / name) << content;
    return (home_ / name).string();
  }
  base::Result<Files> Expand(const Files& names) {
    Files arguments;
    for (const std::string& name : names) arguments.push_back((home_ / name).string());
    return ExpandTexts(arguments);
  }

  fs::path home_;
};

TEST_F(TrainTextsTest, AFolderIsItsFilesByPath) {
  const std::string b = Put("book/b.txt"), ten = Put("book/10"), two = Put("book/2"),
                    deep = Put("book/a/z.txt"), deeper = Put("book/a/b/c/d"), han = Put("book/春");
  Put("book/.hidden");
  Put("book/.git/config");
  Put("book/empty", "");
  EXPECT_EQ(Expand({"book"}).value(), (Files{ten, two, deeper, deep, b, han}));
  const std::string alone = Put("alone");
  EXPECT_EQ(Expand({"alone", "book/a", "alone"}).value(), (Files{alone, deeper, deep, alone}));
  EXPECT_EQ(Expand({"none"}).value(), Files{(home_ / "none").string()}) << "reading it tells";
}

TEST_F(TrainTextsTest, LinksToFilesOnlyAreFollowed) {
  const std::string text = Put("text");
  Put("book/x");
  fs::create_symlink(text, home_ / "book/link");
  fs::create_directory_symlink(home_ / "book", home_ / "book/loop");
  fs::create_symlink("nowhere", home_ / "book/dangling");
  EXPECT_EQ(Expand({"book"}).value(),
            (Files{(home_ / "book/link").string(), (home_ / "book/x").string()}));
}

TEST_F(TrainTextsTest, FoldersWithoutTextAreRefused) {
  Put("book/.hidden");
  Put("book/empty", "");
  const auto refused = Expand({"book"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kBadData);
  EXPECT_NE(refused.error().message.find("book'"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::cli
