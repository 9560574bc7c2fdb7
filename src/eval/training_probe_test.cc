#include "eval/training_probe.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::eval {
namespace {

class TrainingProbeTest : public testing::Test {
 protected:
  TrainingProbeTest() : text_(500) {
    for (std::size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<base::TokenId>(i % 7);
    config_.layers = 1;
    config_.heads = 2;
    config_.embedding = 8;
    config_.feed_forward = 16;
    config_.context = 8;
    config_.vocab = 7;
  }
  base::Result<TrainingProbe> Probe(const training::TrainOptions& options,
                                    std::size_t held_out = 0) {
    return ProbeTraining(config_, options, text_, std::span(text_).first(held_out), team_);
  }
  std::vector<base::TokenId> text_;
  model::Gpt2Config config_;
  base::ThreadTeam team_{1};
};

TEST_F(TrainingProbeTest, MeasuresEveryArrangement) {
  for (const std::uint64_t batch : {1u, 2u, 3u, 32u}) {
    for (const std::uint64_t micro : {1u, 8u, 64u}) {
      const training::TrainOptions options{
          .batch = batch, .shards = std::min<std::uint64_t>(batch, 4), .micro_batch = micro};
      const TrainingProbe probe = Probe(options, 100).value();
      EXPECT_GT(probe.seconds_per_step, 0);
      EXPECT_GT(probe.seconds_per_evaluation, 0);
      EXPECT_TRUE(probe.whole_step);
    }
  }
  for (const std::size_t held_out : {0u, 1u}) {
    EXPECT_EQ(Probe({.batch = 2, .shards = 1}, held_out).value().seconds_per_evaluation, 0);
  }
}

TEST_F(TrainingProbeTest, PassesErrorsOn) {
  text_.resize(8);
  EXPECT_EQ(Probe({}).error().code, base::ErrorCode::kBadData);
  text_.resize(100);
  EXPECT_EQ(Probe({.learning_rate = -1}).error().code, base::ErrorCode::kUsage);
}

TEST(TrainingSeconds, CountsStepsAndEvaluations) {
  const TrainingProbe probe{.seconds_per_step = 2, .seconds_per_evaluation = 100};
  EXPECT_EQ(TrainingSeconds(probe, 10, 5), 220);
  EXPECT_EQ(TrainingSeconds(probe, 11, 5), 322);
  EXPECT_EQ(TrainingSeconds(probe, 3, 5), 106);
}

}  // namespace
}  // namespace kvasir::eval
