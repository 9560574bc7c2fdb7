#include "corpus/tang_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/faulty_env.h"
#include "base/test_directory.h"
#include "corpus/test_poems.h"

namespace kvasir::corpus {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A made-up package in a temporary folder of its own.
class TangCorpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    package_ = root_ / "package";
    fs::create_directories(package_ / "dist/quantangshi");
  }

  void Write(const std::string& name, const std::string& contents) {
    std::ofstream(package_ / "dist/quantangshi" / name, std::ios::binary) << contents;
  }
  base::Result<TangCorpus> Read() { return ReadTangCorpus(env_, package_.string()); }

  // The error of a package whose only file has these contents.
  base::Error ErrorFor(const std::string& contents) {
    Write("poet.tang.0.json", contents);
    const auto corpus = Read();
    EXPECT_FALSE(corpus.has_value()) << contents;
    if (corpus.has_value()) return {};
    EXPECT_THAT(corpus.error().message, HasSubstr("poet.tang.0.json"));
    EXPECT_EQ(corpus.error().message.find('\n'), std::string::npos);
    return corpus.error();
  }

  base::Env& env_ = base::Env::Default();
  const base::TestDirectory directory_;
  const fs::path root_ = directory_.path();
  fs::path package_;
};

TEST_F(TangCorpusTest, KeepsWhatTheRulesKeep) {
  const std::string kept = Quatrain({"山", "水", "花", "月"});
  Write(
      "poet.tang.0.json",
      R"([{"title":"joined","paragraphs":["白日依山盡，黃河入海流。","欲窮千里目，更上一層樓。"]},)"
      R"({"title":"none","paragraphs":[]},)" +
          Json({kept, Quatrain({"山", "水", "花", "〇"}), Quatrain({"山", "水", "花", "\uF900"}),
                Quatrain({"山", "水", "花", "山山"}), kept + "山山山山山。",
                "春春春春春，春春春春春。春春春春春春春，春春春春春春春。",
                "春春春春春，春春春春春！春春春春春，春春春春春。", kept})
              .substr(1));
  const TangCorpus corpus = Read().value();
  EXPECT_THAT(corpus.poems, ElementsAre("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。", kept));
  EXPECT_EQ(corpus.files_read, 1u);
  EXPECT_EQ(corpus.poems_read, 10u);
  EXPECT_EQ(corpus.irregular, 7u);
  EXPECT_EQ(corpus.repeats, 1u);
}

TEST_F(TangCorpusTest, RepeatsAreFoundAfterSimplifying) {
  Write("poet.tang.0.json", Json({Quatrain({"風", "水", "花", "月"})}));
  Write("poet.tang.1000.json", Json({Quatrain({"风", "水", "花", "月"})}));
  const TangCorpus corpus = Read().value();
  EXPECT_THAT(corpus.poems, ElementsAre(Quatrain({"风", "水", "花", "月"})));
  EXPECT_EQ(corpus.repeats, 1u);
}

TEST_F(TangCorpusTest, FilesComeByNumberAndOthersAreIgnored) {
  const auto poem = [](const char* c) { return Quatrain({c, c, c, c}); };
  Write("poet.tang.10000.json", Json({poem("三")}));
  Write("poet.tang.2000.json", Json({poem("二")}));
  Write("poet.tang.0.json", Json({poem("一")}));
  Write("poet.song.0.json", Json({poem("四")}));
  for (const char* name :
       {"poet.tang.json", "poet.tang..json", "poet.tang.1x.json", "poet.tang.01.json",
        "poet.tang.-1.json", "poet.tang.0.json.bak", "poet.tang.99999999999999999999.json"}) {
    Write(name, "not read");
  }
  EXPECT_THAT(Read().value().poems, ElementsAre(poem("一"), poem("二"), poem("三")));
}

TEST_F(TangCorpusTest, WritesAllTrainAndHeldOut) {
  TangCorpus corpus;
  for (int i = 0; i < 108; ++i) corpus.poems.push_back("poem" + std::to_string(i));
  const std::string dir = (root_ / "new/out").string();
  const CorpusFiles files = WriteTangCorpus(env_, corpus, dir).value();
  EXPECT_EQ(files.all.path, dir + "/tang.txt");
  EXPECT_EQ(files.train.path, dir + "/tang.train.txt");
  EXPECT_EQ(files.val.path, dir + "/tang.val.txt");
  EXPECT_EQ(ReadAll(files.val.path), "poem7\npoem57\npoem107\n");
  std::string all;
  std::string train;
  for (int i = 0; i < 108; ++i) {
    const std::string line = "poem" + std::to_string(i) + "\n";
    all += line;
    if (i % 50 != 7) train += line;
  }
  EXPECT_EQ(ReadAll(files.all.path), all);
  EXPECT_EQ(ReadAll(files.train.path), train);
  EXPECT_EQ(files.all.counts.lines, 108u);
  EXPECT_EQ(files.train.counts.lines, 105u);
  EXPECT_EQ(files.val.counts.lines, 3u);
  EXPECT_EQ(files.val.counts.characters, 21u);
}

TEST_F(TangCorpusTest, SaysWhatItLookedFor) {
  const auto expect_not_a_package = [&](const fs::path& dir, const char* why) {
    const auto corpus = ReadTangCorpus(env_, dir.string());
    ASSERT_FALSE(corpus.has_value());
    EXPECT_EQ(corpus.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(corpus.error().message, HasSubstr("'" + dir.string() + "'"));
    EXPECT_THAT(corpus.error().message, HasSubstr("dist/quantangshi/poet.tang.N.json"));
    EXPECT_THAT(corpus.error().message, HasSubstr(why));
    EXPECT_THAT(corpus.error().hint, HasSubstr("npm pack chinese-poetry@2.0.1"));
  };
  expect_not_a_package(root_ / "absent", "no such folder");
  expect_not_a_package(root_, "it has no such folder");
  expect_not_a_package(package_, "it has no such file");
  std::ofstream(root_ / "file") << "x";
  expect_not_a_package(root_ / "file", "not a folder");
  expect_not_a_package("", "no such folder");
}

TEST_F(TangCorpusTest, BadJsonIsNamedWithItsOffset) {
  EXPECT_THAT(ErrorFor("[{]").message, HasSubstr("refused at offset 2 of 3"));
  EXPECT_THAT(ErrorFor("").message, HasSubstr("refused at offset 0 of 0"));
  EXPECT_THAT(ErrorFor("[1e999]").message, HasSubstr("out of range"));
  EXPECT_THAT(ErrorFor("[] []").message, HasSubstr("refused at offset 3 of 5"));
  EXPECT_THAT(ErrorFor("[\"\xff\"]").message, HasSubstr("refused at offset 2 of 5"));
  EXPECT_THAT(ErrorFor(std::string(100000, '[')).message, HasSubstr("not valid JSON"));
  EXPECT_EQ(ErrorFor("[{]").code, base::ErrorCode::kBadData);
}

TEST_F(TangCorpusTest, OtherJsonIsNotPoems) {
  EXPECT_THAT(ErrorFor("{}").message, HasSubstr("holds object, not an array of poems"));
  for (const char* poem : {"1", "{}", R"({"paragraphs":"x"})", R"({"paragraphs":[1]})"}) {
    const std::string contents = R"([{"paragraphs":[]},)" + std::string(poem) + "]";
    EXPECT_THAT(ErrorFor(contents).message, HasSubstr("poem 1 is not an object whose"));
  }
}

TEST_F(TangCorpusTest, NoRegularPoemIsAnError) {
  Write("poet.tang.0.json", "[]");
  const auto corpus = Read();
  ASSERT_FALSE(corpus.has_value());
  EXPECT_THAT(corpus.error().message, HasSubstr("none of the 0 poems"));
  const auto written = WriteTangCorpus(env_, TangCorpus{}, root_.string());
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, base::ErrorCode::kBadData);
}

TEST_F(TangCorpusTest, MissingOpenccConfigurationIsAnError) {
  Write("poet.tang.0.json", Json({Quatrain({"山", "水", "花", "月"})}));
  const auto corpus = ReadTangCorpus(env_, package_.string(), (root_ / "none.json").string());
  ASSERT_FALSE(corpus.has_value());
  EXPECT_EQ(corpus.error().code, base::ErrorCode::kIo);
  EXPECT_THAT(corpus.error().message, HasSubstr("none.json"));
}

TEST_F(TangCorpusTest, AFullDiskLosesNothing) {
  const std::string dir = root_.string();
  TangCorpus old_corpus;
  for (int i = 0; i < 10; ++i) old_corpus.poems.push_back("old");
  ASSERT_TRUE(WriteTangCorpus(env_, old_corpus, dir).has_value());
  const CorpusTexts old_texts = SplitTangCorpus(old_corpus);
  TangCorpus new_corpus;
  for (int i = 0; i < 10; ++i) new_corpus.poems.push_back("newer");
  const CorpusTexts new_texts = SplitTangCorpus(new_corpus);
  for (std::uint64_t operation = 0;; ++operation) {
    base::FaultyEnv faulty(env_);
    faulty.FailOperation(operation);
    const auto written = WriteTangCorpus(faulty, new_corpus, dir);
    const std::string all = ReadAll(root_ / "tang.txt");
    EXPECT_TRUE(all == old_texts.all || all == new_texts.all) << operation;
    const std::string val = ReadAll(root_ / "tang.val.txt");
    EXPECT_TRUE(val == old_texts.val || val == new_texts.val) << operation;
    if (written) {
      EXPECT_EQ(all, new_texts.all);
      EXPECT_EQ(val, new_texts.val);
      EXPECT_GT(operation, 9u);  // Three files of at least create, append, rename each.
      break;
    }
  }
}

TEST_F(TangCorpusTest, ATruncatedFileIsAnError) {
  Write("poet.tang.0.json", Json({Quatrain({"山", "水", "花", "月"})}));
  base::FaultyEnv faulty(env_);
  faulty.TruncateReads(40);
  const auto corpus = ReadTangCorpus(faulty, package_.string());
  ASSERT_FALSE(corpus.has_value());
  EXPECT_THAT(corpus.error().message, HasSubstr("not valid JSON"));
}

// The counts of the real package; set KVASIR_TANG_SRC to the unpacked chinese-poetry 2.0.1.
TEST_F(TangCorpusTest, RealPackageGivesThePublishedCounts) {
  const char* source = std::getenv("KVASIR_TANG_SRC");
  if (source == nullptr) GTEST_SKIP() << "KVASIR_TANG_SRC is not set";
  const TangCorpus corpus = ReadTangCorpus(env_, source).value();
  EXPECT_EQ(corpus.files_read, 58u);
  EXPECT_EQ(corpus.poems_read, 57607u);
  EXPECT_EQ(corpus.poems_read, corpus.poems.size() + corpus.irregular + corpus.repeats);
  const CorpusFiles files = WriteTangCorpus(env_, corpus, root_.string()).value();
  EXPECT_EQ(files.all.counts.lines, 36026u);
  EXPECT_EQ(files.all.counts.characters, 1637450u);
  EXPECT_EQ(files.all.counts.distinct_characters, 6656u);
  EXPECT_EQ(files.train.counts.lines, 36026u - 721u);
  EXPECT_EQ(files.val.counts.lines, 721u);
  EXPECT_EQ(files.val.counts.characters, 32425u);
  const std::string all = ReadAll(files.all.path);
  EXPECT_EQ(CountPhrase(all, "春风"), 810u);
  EXPECT_EQ(CountPhrase(all, "春风。"), 113u);
}

}  // namespace
}  // namespace kvasir::corpus
