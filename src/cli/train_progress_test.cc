#include "cli/train_progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace kvasir::cli {
namespace {

constexpr const char* kHeading =
    "step\tloss\tgradient_norm\tlearning_rate\ttokens_per_s\theld_out\n";

class TrainProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/train_progress_test_" + std::to_string(getpid());
    model::Gpt2Config config;
    config.layers = config.heads = 1;
    config.embedding = config.feed_forward = config.context = 4;
    config.vocab = 3;
    training::TrainOptions options;
    options.batch = options.shards = 1;
    trainer_ = training::Trainer::Make(config, options, text_, team_).value();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(trainer_->Step().has_value());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void Put(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  std::string Log() const {
    std::ostringstream out;
    out << std::ifstream(path_, std::ios::binary).rdbuf();
    return out.str();
  }
  // Resumes after step 3 and logs step 4: its first column tells where it went.
  bool Resume() {
    auto progress = TrainProgress::Open(path_, true, *trainer_);
    if (!progress) return false;
    training::Progress step;
    step.step.step = 4;
    progress.value()->Show(step);
    return progress.value()->Finish().has_value();
  }
  std::string path_;
  const std::vector<base::TokenId> text_ = std::vector<base::TokenId>(20, 1);
  base::ThreadTeam team_{1};
  std::unique_ptr<training::Trainer> trainer_;
};

TEST_F(TrainProgressTest, ResumesAfterTheStepsThatAreDone) {
  const std::string kept = std::string(kHeading) + "1\ta\n2\tb\n3\tc\n";
  for (const char* rest : {"", "4\td\n5\te\n", "4\td\n3\tc\n", "4", "3\tc", "3\n", "x\t1\n3\tc\n",
                           "-1\t\n", "99999999999999999999999\t\n", "\n"}) {
    Put(kept + rest);
    ASSERT_TRUE(Resume()) << rest;
    EXPECT_EQ(Log().substr(0, kept.size() + 2), kept + "4\t") << rest;
    EXPECT_EQ(Log().substr(kept.size()).find('\n'), Log().size() - kept.size() - 1);
  }
}

TEST_F(TrainProgressTest, BeginsWhereThereIsNone) {
  ASSERT_TRUE(Resume());
  EXPECT_EQ(Log().find(std::string(kHeading) + "4\t"), 0u);
  Put("");
  ASSERT_TRUE(Resume());
  EXPECT_EQ(Log().find(std::string(kHeading) + "4\t"), 0u);
  Put("anything");
  ASSERT_TRUE(TrainProgress::Open(path_, false, *trainer_).has_value());
  EXPECT_EQ(Log(), kHeading);
}

TEST_F(TrainProgressTest, WhatIsNoLogIsLeftAlone) {
  const std::string heading = kHeading;
  for (const std::string& content : {std::string("notes\n1\t2\n"), std::string("\n"),
                                     heading.substr(0, heading.size() - 1), "x" + heading}) {
    Put(content);
    const auto opened = TrainProgress::Open(path_, true, *trainer_);
    ASSERT_FALSE(opened.has_value()) << content;
    EXPECT_EQ(opened.error().code, base::ErrorCode::kBadData);
    EXPECT_NE(opened.error().message.find(path_), std::string::npos);
    EXPECT_EQ(Log(), content);
  }
  EXPECT_FALSE(TrainProgress::Open(path_ + "/none", true, *trainer_).has_value());
}

TEST(ClockText, IsShort) {
  EXPECT_EQ(ClockText(63), "01:03");
  EXPECT_EQ(ClockText(3723.9), "1:02:03");
  EXPECT_EQ(ClockText(-5), "00:00");
  EXPECT_EQ(ClockText(1e30), "99:59:59");
}

}  // namespace
}  // namespace kvasir::cli
