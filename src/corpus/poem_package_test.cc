#include "corpus/poem_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/test_directory.h"

namespace kvasir::corpus {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PoemPackageTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "dist/quantangshi"); }

  std::string Write(const std::string& name, const std::string& contents) {
    const fs::path path = root_ / "dist/quantangshi" / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path.string();
  }
  std::vector<std::uint64_t> Numbers(const char* period) {
    std::vector<std::uint64_t> numbers;
    const auto files = ListPoemFiles(root_.string(), period).value();
    for (const PoemFile& file : files) numbers.push_back(file.number);
    return numbers;
  }
  base::Result<std::vector<std::string>> Read(const std::string& contents) {
    return ReadPoemFile(base::Env::Default(), Write("poet.tang.0.json", contents),
                        Simplifier::Open("t2s.json").value());
  }

  const base::TestDirectory directory_;
  const fs::path root_ = directory_.path();
};

TEST_F(PoemPackageTest, ListsOnePeriodByNumber) {
  for (const char* name : {"poet.tang.9.json", "poet.tang.10000.json", "poet.tang.2000.json",
                           "poet.song.3.json", "poet.song.03.json", "authors.song.json"}) {
    Write(name, "");
  }
  EXPECT_THAT(Numbers("tang"), ElementsAre(9, 2000, 10000));
  EXPECT_THAT(Numbers("song"), ElementsAre(3));
  const auto none = ListPoemFiles(root_.string(), "yuan");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(none.error().message, HasSubstr("poet.yuan.N.json"));
}

TEST_F(PoemPackageTest, PoemsOfAnyShapeComeInOrderAndSimplified) {
  EXPECT_THAT(
      Read(R"([{"paragraphs":["春風","。"]},{"paragraphs":[]},{"paragraphs":["花"]}])").value(),
      ElementsAre("春风。", "", "花"));
  EXPECT_THAT(Read("[]").value(), ElementsAre());
}

TEST_F(PoemPackageTest, FaultsNameFileAndPlace) {
  for (const auto& [contents, why] : {std::pair{"[{]", "refused at offset 2 of 3"},
                                      {"3", "holds number, not an array of poems"},
                                      {R"([{"paragraphs":[]},{}])", "poem 1 is not an object"}}) {
    const auto poems = Read(contents);
    ASSERT_FALSE(poems.has_value()) << contents;
    EXPECT_EQ(poems.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(poems.error().message, HasSubstr("poet.tang.0.json"));
    EXPECT_THAT(poems.error().message, HasSubstr(why));
  }
}

}  // namespace
}  // namespace kvasir::corpus
