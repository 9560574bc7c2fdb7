#include "corpus/verse_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/faulty_env.h"
#include "base/test_directory.h"
#include "corpus/copy_filter.h"
#include "corpus/test_poems.h"

namespace kvasir::corpus {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A made-up package: poem 7 of its Tang poems is held out.
class VerseCorpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "package/dist/quantangshi");
    std::vector<std::string> tang;
    const char* characters[] = {"甲", "乙", "丙", "丁", "戊", "己", "庚", "辛", "壬"};
    for (const char* c : characters) tang.push_back(Quatrain({c, "风", c, "月"}));
    tang[7] = kHeldOut;
    Write("poet.tang.0.json", Json(tang));
  }

  void Write(const std::string& name, const std::string& contents) {
    std::ofstream(root_ / "package/dist/quantangshi" / name, std::ios::binary) << contents;
  }
  base::Result<VerseCorpus> Read() {
    return ReadVerseCorpus(base::Env::Default(), (root_ / "package").string());
  }

  inline static const std::string kHeldOut = Quatrain({"春", "夏", "秋", "冬"});
  const base::TestDirectory directory_;
  const fs::path root_ = directory_.path();
};

TEST_F(VerseCorpusTest, CountsEverySongPoemUnderOneRule) {
  const std::string kept = Quatrain({"甲", "乙", "丙", "丁"});
  Write("poet.song.0.json",
        Json({"甲。", kept, kept, Quatrain({"甲", "风", "甲", "月"}), kHeldOut,
              Quatrain({"甲", "乙", "丙", "虹"}), Quatrain({"戊", "己", "庚", "冬"})}));
  Write("poet.song.1000.json", Json({Quatrain({"風", "乙", "丙", "丁"})}));
  const VerseCorpus corpus = Read().value();
  EXPECT_THAT(corpus.song, ElementsAre(kept, Quatrain({"风", "乙", "丙", "丁"})));
  EXPECT_EQ(corpus.song_files_read, 2u);
  EXPECT_EQ(corpus.song_poems_read, 8u);
  EXPECT_EQ(corpus.song_irregular, 1u);
  EXPECT_EQ(corpus.song_repeats, 3u);  // Of itself, of a Tang poem, of the one held out.
  EXPECT_EQ(corpus.song_strange, 1u);
  EXPECT_EQ(corpus.song_near_copies, 1u);  // 冬冬冬冬冬 is a row of five.
}

TEST_F(VerseCorpusTest, TangKeepsItsSplitButForNearCopies) {
  Write("poet.song.0.json", "[]");
  const VerseCorpus corpus = Read().value();
  EXPECT_THAT(corpus.held_out, ElementsAre(kHeldOut));
  EXPECT_EQ(corpus.tang.size(), 8u);
  EXPECT_EQ(corpus.tang_near_copies, 0u);

  std::vector<std::string> tang = {Quatrain({"甲", "乙", "丙", "冬"})};  // Nearly poem 7.
  tang.insert(tang.end(), corpus.tang.begin(), corpus.tang.begin() + 6);
  tang.push_back(kHeldOut);
  Write("poet.tang.0.json", Json(tang));
  const VerseCorpus thinned = Read().value();
  EXPECT_THAT(thinned.held_out, ElementsAre(kHeldOut));
  EXPECT_EQ(thinned.tang_near_copies, 1u);
  EXPECT_EQ(thinned.tang, std::vector<std::string>(tang.begin() + 1, tang.end() - 1));
}

TEST_F(VerseCorpusTest, NamesThePeriodThatIsMissing) {
  const auto corpus = Read();
  ASSERT_FALSE(corpus.has_value());
  EXPECT_EQ(corpus.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(corpus.error().message, HasSubstr("dist/quantangshi/poet.song.N.json"));
}

TEST_F(VerseCorpusTest, WritesThreeFilesOrNothing) {
  VerseCorpus corpus;
  corpus.tang = {"甲"};
  corpus.song = {"乙", "丙"};
  corpus.held_out = {"丁"};
  const std::string dir = (root_ / "new/out").string();
  const VerseCorpusFiles files = WriteVerseCorpus(base::Env::Default(), corpus, dir).value();
  const auto text = [](const CorpusFile& file) {
    std::ostringstream out;
    out << std::ifstream(file.path, std::ios::binary).rdbuf();
    return out.str();
  };
  EXPECT_EQ(files.tang.path, dir + "/verse.tang.txt");
  EXPECT_EQ(files.song.path, dir + "/verse.song.txt");
  EXPECT_EQ(files.val.path, dir + "/verse.val.txt");
  EXPECT_EQ(text(files.tang), "甲\n");
  EXPECT_EQ(text(files.song), "乙\n丙\n");
  EXPECT_EQ(text(files.val), "丁\n");
  EXPECT_EQ(files.song.counts.lines, 2u);

  base::FaultyEnv faulty(base::Env::Default());
  faulty.FailOperation(1);
  const auto failed = WriteVerseCorpus(faulty, VerseCorpus{}, dir);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, base::ErrorCode::kIo);
  EXPECT_EQ(text(files.tang), "甲\n");
}

// The counts of the real package; set KVASIR_TANG_SRC to the unpacked chinese-poetry 2.0.1.
TEST_F(VerseCorpusTest, RealPackageGivesThePublishedCounts) {
  const char* source = std::getenv("KVASIR_TANG_SRC");
  if (source == nullptr) GTEST_SKIP() << "KVASIR_TANG_SRC is not set";
  const VerseCorpus corpus = ReadVerseCorpus(base::Env::Default(), source).value();
  EXPECT_EQ(corpus.held_out.size(), 721u);
  EXPECT_EQ(corpus.tang.size(), 35175u);
  EXPECT_EQ(corpus.tang_near_copies, 130u);
  EXPECT_EQ(corpus.song_poems_read, 254248u);
  EXPECT_EQ(corpus.song_irregular, 61924u);
  EXPECT_EQ(corpus.song_repeats, 1029u);
  EXPECT_EQ(corpus.song_strange, 27731u);
  EXPECT_EQ(corpus.song_near_copies, 189u);
  EXPECT_EQ(corpus.song.size(), 163375u);
}

}  // namespace
}  // namespace kvasir::corpus
