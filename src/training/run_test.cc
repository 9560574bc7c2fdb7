#include "training/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/faulty_env.h"
#include "model/model_file.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::training {
namespace {

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/run_test_" + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
    std::string text;
    for (int i = 0; i < 60; ++i) text += "春眠不觉晓，处处闻啼鸟。\n";
    vocabulary_ = tokenizer::BuildCharacterVocabulary(text).value();
    const auto characters =
        tokenizer::CharacterTokenizer::Make(tokenizer::Vocabulary::Make(vocabulary_).value())
            .value();
    text_ = characters->Encode(text).value();
    config_.layers = 1;
    config_.heads = 2;
    config_.embedding = 8;
    config_.feed_forward = 16;
    config_.context = 12;
    config_.vocab = vocabulary_.pieces.size();
    options_.steps = 12;
    options_.batch = 4;
    options_.shards = 2;
    options_.warmup = 2;
    run_.output = directory_ + "/out.gguf";
    run_.name = "run";
    run_.checkpoint_every = 5;
    run_.checkpoint_directory = directory_ + "/checkpoints";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Trainer> NewTrainer() {
    return Trainer::Make(config_, options_, text_, team_).value();
  }
  base::Result<RunResult> Run(
      Trainer& trainer, base::Env& env, BestModel& best,
      const std::function<void(const Progress&)>& on_step = [](auto&) {}) {
    return RunTraining(trainer, best, env, vocabulary_, run_, on_step);
  }
  // Judged by a held-out text every 4 steps.
  BestModel Judged() {
    BestModel best;
    best.held_out = std::span(text_).first(30);
    best.eval_every = 4;
    return best;
  }
  // From the start or, resumed, from the checkpoint; the losses that were measured, by step.
  std::map<std::uint64_t, double> RunOn(bool resume) {
    auto trainer = NewTrainer();
    BestModel best = Judged();
    const std::string path = CheckpointPath(run_.checkpoint_directory);
    if (resume) {
      EXPECT_TRUE(trainer->LoadCheckpoint(base::Env::Default(), path, best).has_value());
    }
    std::map<std::uint64_t, double> measured;
    EXPECT_TRUE(Run(*trainer, base::Env::Default(), best, [&](const Progress& p) {
                  if (p.evaluation) measured[p.step.step] = p.evaluation->nll;
                }).has_value());
    return measured;
  }
  std::string Bytes(const std::string& path) {
    return std::string(base::Env::Default().Map(path).value()->text());
  }

  std::string directory_;
  tokenizer::VocabularySpec vocabulary_;
  std::vector<TokenId> text_;
  model::Gpt2Config config_;
  TrainOptions options_;
  RunOptions run_;
  base::ThreadTeam team_{1};
};

TEST_F(RunTest, SavesTheBestModel) {
  options_.learning_rate = 3;  // The loss goes up and down.
  auto trainer = NewTrainer();
  BestModel best = Judged();
  std::size_t evaluations = 0;
  double least = 1e300;
  const auto result = Run(*trainer, base::Env::Default(), best, [&](const Progress& p) {
    if (!p.evaluation) return;
    ++evaluations;
    EXPECT_EQ(p.is_best, p.evaluation->nll < least);
    least = std::min(least, p.evaluation->nll);
  });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(evaluations, 3u);
  EXPECT_EQ(result.value().steps_done, 12u);
  EXPECT_EQ(best.loss, least);
  const auto loaded = model::LoadGpt2(base::Env::Default(), run_.output).value();
  EXPECT_EQ(loaded.model->config(), config_);
  // The file is the model of that loss.
  std::copy_n(best.parameters.data(), best.parameters.size(), trainer->parameters().data());
  trainer->ParametersChanged();
  EXPECT_EQ(trainer->Evaluate(best.held_out).nll, least);
  for (const model::TensorSpec& spec : model::Gpt2Tensors(config_)) {
    const auto values = trainer->Source()(spec).value();
    EXPECT_EQ(loaded.model->TensorValues(spec), std::vector<float>(values.begin(), values.end()));
  }
}

// Stopped at any step and resumed, the run measures what the unbroken run measures, and ends with
// its bytes on disk. The rate makes an early or an unscheduled model the best.
TEST_F(RunTest, StopAndResumeGiveTheUnbrokenFiles) {
  for (const double rate : {0.01, 3.0}) {
    options_.learning_rate = rate;
    const auto losses = RunOn(false);
    const std::string model = Bytes(run_.output);
    const std::string checkpoint = Bytes(CheckpointPath(run_.checkpoint_directory));
    for (std::uint64_t stop_at = 1; stop_at < options_.steps; ++stop_at) {
      run_.stop_at = stop_at;
      auto measured = RunOn(false);
      std::filesystem::remove(run_.output);  // What resumes needs the checkpoint alone.
      EXPECT_EQ(RunOn(true).size(), 0u) << "stopped where it was to stop";
      run_.stop_at.reset();
      measured.merge(RunOn(true));
      EXPECT_EQ(measured, losses) << stop_at;
      EXPECT_TRUE(Bytes(run_.output) == model) << "rate " << rate << " stop " << stop_at;
      EXPECT_TRUE(Bytes(CheckpointPath(run_.checkpoint_directory)) == checkpoint) << stop_at;
    }
    // What has ended writes its result again.
    std::filesystem::remove(run_.output);
    EXPECT_EQ(RunOn(true).size(), 0u);
    EXPECT_TRUE(Bytes(run_.output) == model);
  }
}

// Ended before the first measurement: the last weights are written, but never count as the best.
TEST_F(RunTest, StoppedBeforeAnyMeasurement) {
  std::atomic<bool> stop{false};
  run_.stop = &stop;
  auto trainer = NewTrainer();
  BestModel best = Judged();
  const auto result = Run(*trainer, base::Env::Default(), best,
                          [&](const Progress& p) { stop = p.step.step == 2; });
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result.value().stopped);
  EXPECT_EQ(result.value().steps_done, 3u);
  EXPECT_FALSE(best.measured());
  const auto loaded = model::LoadGpt2(base::Env::Default(), run_.output).value();
  for (const model::TensorSpec& spec : model::Gpt2Tensors(config_)) {
    const auto values = trainer->Source()(spec).value();
    EXPECT_EQ(loaded.model->TensorValues(spec), std::vector<float>(values.begin(), values.end()));
  }
}

// A run that is resumed to end where it stands is measured there, off the schedule.
TEST_F(RunTest, EndsWhereItStands) {
  run_.stop_at = 6;
  RunOn(false);
  options_.steps = 6;
  auto trainer = NewTrainer();
  BestModel best = Judged();
  const std::string path = CheckpointPath(run_.checkpoint_directory);
  ASSERT_TRUE(trainer->LoadCheckpoint(base::Env::Default(), path, best).has_value());
  EXPECT_EQ(best.step, 4u);
  ASSERT_TRUE(Run(*trainer, base::Env::Default(), best).has_value());
  EXPECT_EQ(best.step, 6u);
  options_.steps = 5;
  auto beyond = NewTrainer();
  ASSERT_TRUE(beyond->LoadCheckpoint(base::Env::Default(), path, best).has_value());
  const auto refused = Run(*beyond, base::Env::Default(), best);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
}

// Patience ends a run where nothing got better for so many measurements; stopping and resuming does
// not change where that is.
TEST_F(RunTest, PatienceEndsTheRun) {
  options_.learning_rate = 3;  // The loss goes up and down.
  options_.steps = 400;
  for (const std::uint64_t patience : {1u, 3u}) {
    run_.patience = patience;
    auto trainer = NewTrainer();
    BestModel best = Judged();
    std::filesystem::remove_all(run_.checkpoint_directory);
    const auto whole = Run(*trainer, base::Env::Default(), best).value();
    ASSERT_TRUE(whole.early);
    EXPECT_FALSE(whole.stopped);
    EXPECT_EQ(whole.steps_done, best.step + 4 * patience);
    const std::string model = Bytes(run_.output);
    const std::string checkpoint = Bytes(CheckpointPath(run_.checkpoint_directory));
    for (std::uint64_t stop_at = 1; stop_at <= whole.steps_done; ++stop_at) {
      run_.stop_at = stop_at;
      RunOn(false);
      run_.stop_at.reset();
      RunOn(true);
      EXPECT_TRUE(Bytes(run_.output) == model) << stop_at;
      EXPECT_TRUE(Bytes(CheckpointPath(run_.checkpoint_directory)) == checkpoint) << stop_at;
      EXPECT_EQ(RunOn(true).size(), 0u) << "it has ended";
    }
  }
  // With more of it, a run that had ended goes on as if it had had it from the start.
  run_.patience = 1;
  RunOn(false);
  run_.patience = 3;
  RunOn(true);
  const std::string resumed = Bytes(run_.output);
  RunOn(false);
  EXPECT_TRUE(Bytes(run_.output) == resumed);
}

// At whichever operation on a file a run fails, it ends with an Error; a checkpoint that is there
// is whole, and going on from it gives the unbroken run's model.
TEST_F(RunTest, FaultsLoseNothing) {
  RunOn(false);
  const std::string model = Bytes(run_.output);
  base::FaultyEnv counting(base::Env::Default());
  auto whole = NewTrainer();
  BestModel best = Judged();
  ASSERT_TRUE(Run(*whole, counting, best).has_value());
  ASSERT_GE(counting.operations(), 15u);
  const std::string path = CheckpointPath(run_.checkpoint_directory);
  for (std::uint64_t i = 0; i < counting.operations(); ++i) {
    std::filesystem::remove_all(run_.checkpoint_directory);
    std::filesystem::remove(run_.output);
    base::FaultyEnv faulty(base::Env::Default());
    faulty.FailOperation(i);
    auto first = NewTrainer();
    BestModel lost = Judged();
    const auto result = Run(*first, faulty, lost);
    ASSERT_FALSE(result.has_value()) << i;
    EXPECT_EQ(result.error().code, base::ErrorCode::kIo);
    RunOn(std::filesystem::exists(path));
    EXPECT_TRUE(Bytes(run_.output) == model) << i;
  }
}

// A full disk ends the run with an Error; the last good model is still there.
TEST_F(RunTest, FullDiskLosesNothing) {
  auto trainer = NewTrainer();
  run_.checkpoint_directory.clear();
  BestModel none, best = Judged();
  ASSERT_TRUE(Run(*trainer, base::Env::Default(), none).has_value());
  const std::string before = Bytes(run_.output);
  base::FaultyEnv faulty(base::Env::Default());
  faulty.LimitBytes(500);
  auto again = NewTrainer();
  const auto result = Run(*again, faulty, best);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kIo);
  EXPECT_EQ(Bytes(run_.output), before);
}

}  // namespace
}  // namespace kvasir::training
