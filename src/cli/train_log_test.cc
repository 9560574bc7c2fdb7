#include "cli/train_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace kvasir::cli {
namespace {

using testing::HasSubstr;

class TrainLogTest : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }
  base::Result<std::vector<TrainLogLine>> Read(const std::string& content) {
    EXPECT_TRUE(base::WriteFileAtomic(base::Env::Default(), path_, content).has_value());
    return ReadTrainLog(base::Env::Default(), path_);
  }
  const std::string heading_ = std::string(kTrainLogHeading) + "\n";
  const std::string path_ = testing::TempDir() + "/train_log_test_" + std::to_string(getpid());
};

TEST_F(TrainLogTest, ReadsWhatItWrites) {
  const TrainLogLine first{1, 8.5, 2.25, 1e-5, 1234, {}};
  const TrainLogLine second{2, 8.25, 0.5, 0.001, 1200, 8.125};
  EXPECT_EQ(second.Text(), "2\t8.250000\t0.5000\t0.001\t1200\t8.125000\n");
  const auto lines = Read(heading_ + first.Text() + second.Text() + "3\t8.").value();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].Text(), first.Text());
  EXPECT_FALSE(lines[0].held_out.has_value());
  EXPECT_EQ(lines[1].Text(), second.Text());
  EXPECT_EQ(Read("").value().size(), 0u);
  EXPECT_EQ(Read(heading_).value().size(), 0u);
}

TEST_F(TrainLogTest, NamesTheLineThatIsNone) {
  const std::string good = TrainLogLine{1, 8.5, 2.25, 1e-5, 1234, {}}.Text();
  for (const char* bad : {"\n", "1\t2\t3\t4\t5\n", "1\t2\t3\t4\t5\t6\t7\n", "-1\t2\t3\t4\t5\t\n",
                          "1\tx\t3\t4\t5\t\n", "1\t2\t3\t4\t5\t6x\n"}) {
    const auto read = Read(heading_ + good + bad);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
    EXPECT_THAT(read.error().message, HasSubstr("line 3"));
  }
  EXPECT_FALSE(Read(good).has_value()) << "without a heading";
  EXPECT_FALSE(ReadTrainLog(base::Env::Default(), path_ + "none").has_value());
}

TEST(DrawTrainLog, ShowsLossAndRate) {
  std::vector<TrainLogLine> lines;
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    const double loss = step % 2 == 0 ? 5 : 3;
    lines.push_back({step, loss, 1, 0.001, 100, {}});
    if (step % 100 == 0) lines.back().held_out = 4.5;
  }
  const std::string svg = DrawTrainLog("春 & co", lines);
  EXPECT_THAT(svg, HasSubstr("春 &amp; co"));
  EXPECT_THAT(svg, HasSubstr("means of 3 steps"));
  for (const char* label : {">training<", ">held out<", ">learning rate<", ">step<"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
  std::size_t dots = 0;
  for (std::size_t at = svg.find("<circle"); at != svg.npos; at = svg.find("<circle", at + 1)) {
    ++dots;
  }
  EXPECT_EQ(dots, 10u);
  EXPECT_LT(svg.size(), 20000u) << "however long the run";
  EXPECT_THAT(DrawTrainLog("", {}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace kvasir::cli
