#include "cli/train_corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace kvasir::cli {
namespace {

class TrainCorpusTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = testing::TempDir() + "/train_corpus_test_" + std::to_string(getpid());
    std::filesystem::create_directories(home_);
  }
  void TearDown() override { std::filesystem::remove_all(home_); }
  std::string Put(const std::string& name, const std::string& content) {
    const std::string path = home_ + "/" + name;
    EXPECT_TRUE(base::WriteFileAtomic(base::Env::Default(), path, content).has_value());
    return path;
  }
  std::string home_;
};

TEST_F(TrainCorpusTest, WhatTheTrainingTextLacksIsUntrained) {
  const std::string one = Put("one", "春 风"), two = Put("two", "月"), val = Put("val", "人月a风");
  const auto corpus = ReadTrainCorpus(base::Env::Default(), {one, two}, val).value();
  EXPECT_EQ(corpus.text.size(), 4u);
  ASSERT_EQ(corpus.held_out.size(), 4u);
  EXPECT_EQ(corpus.vocabulary.pieces.size(), 3u + 256 + 6);
  std::vector<std::string> untrained;
  for (base::TokenId id : corpus.vocabulary.untrained) {
    untrained.push_back(corpus.vocabulary.pieces[id]);
  }
  EXPECT_EQ(untrained, (std::vector<std::string>{"a", "人"}));  // No special or byte token.
  EXPECT_TRUE(
      ReadTrainCorpus(base::Env::Default(), {one}, "").value().vocabulary.untrained.empty());
}

TEST_F(TrainCorpusTest, RefusesWhatIsNoText) {
  const std::string good = Put("good", "春风"), empty = Put("empty", ""),
                    binary = Put("binary", "春\xff"), short_one = Put("short", "月");
  const auto message = [&](const std::vector<std::string>& texts, const std::string& val) {
    const auto read = ReadTrainCorpus(base::Env::Default(), texts, val);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message({good}, good), "");
  for (const bool held_out : {false, true}) {
    const auto of = [&](const std::string& bad) {
      return held_out ? message({good}, bad) : message({good, bad}, good);
    };
    EXPECT_EQ(of(empty), "'" + empty + "' is empty");
    EXPECT_NE(of(binary).find("'" + binary + "' is not UTF-8: byte 0xFF at offset 3"),
              std::string::npos);
    EXPECT_NE(of(home_ + "/none").find("none"), std::string::npos);
  }
  EXPECT_NE(message({good}, short_one).find("at least 2"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::cli
