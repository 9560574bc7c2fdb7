#include "training/run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

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
    run_.eval_every = 4;
    run_.checkpoint_every = 5;
    run_.checkpoint_directory = directory_ + "/checkpoints";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Trainer> NewTrainer() {
    return Trainer::Make(config_, options_, text_, team_).value();
  }
  base::Result<RunResult> Run(
      Trainer& trainer, base::Env& env, std::span<const TokenId> held_out,
      const std::function<void(const Progress&)>& on_step = [](auto&) {}) {
    return RunTraining(trainer, env, vocabulary_, held_out, run_, on_step);
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
  auto trainer = NewTrainer();
  std::size_t evaluations = 0;
  double best = 1e300;
  const auto result =
      Run(*trainer, base::Env::Default(), std::span(text_).first(30), [&](const Progress& p) {
        if (!p.evaluation) return;
        ++evaluations;
        EXPECT_EQ(p.is_best, p.evaluation->nll < best);
        best = std::min(best, p.evaluation->nll);
      });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(evaluations, 3u);
  EXPECT_EQ(result.value().steps_done, 12u);
  EXPECT_EQ(result.value().best_loss, best);
  const auto loaded = model::LoadGpt2(base::Env::Default(), run_.output).value();
  EXPECT_EQ(loaded.model->config(), config_);
}

// Stopped at any step and resumed, the run ends with the unbroken run's bytes on disk.
TEST_F(RunTest, StopAndResumeGiveTheUnbrokenFiles) {
  auto whole = NewTrainer();
  ASSERT_TRUE(Run(*whole, base::Env::Default(), std::span(text_).first(30)).has_value());
  const std::string model = Bytes(run_.output);
  const std::string checkpoint = Bytes(CheckpointPath(run_.checkpoint_directory));
  for (std::uint64_t stop_at : {1u, 5u, 11u}) {
    std::atomic<bool> stop{false};
    run_.stop = &stop;
    auto first = NewTrainer();
    const auto stopped = Run(*first, base::Env::Default(), std::span(text_).first(30),
                             [&](const Progress& p) { stop = p.step.step + 1 >= stop_at; });
    ASSERT_TRUE(stopped.has_value());
    EXPECT_TRUE(stopped.value().stopped);
    run_.stop = nullptr;
    auto second = NewTrainer();
    ASSERT_TRUE(
        second->LoadCheckpoint(base::Env::Default(), CheckpointPath(run_.checkpoint_directory))
            .has_value());
    ASSERT_TRUE(Run(*second, base::Env::Default(), std::span(text_).first(30)).has_value());
    EXPECT_EQ(std::memcmp(whole->parameters().data(), second->parameters().data(),
                          whole->parameters().size_bytes()),
              0)
        << stop_at;
  }
  EXPECT_FALSE(model.empty());
  EXPECT_FALSE(checkpoint.empty());
}

// A full disk ends the run with an Error; the last good model is still there.
TEST_F(RunTest, FullDiskLosesNothing) {
  auto trainer = NewTrainer();
  run_.checkpoint_directory.clear();
  ASSERT_TRUE(Run(*trainer, base::Env::Default(), {}).has_value());
  const std::string before = Bytes(run_.output);
  base::FaultyEnv faulty(base::Env::Default());
  faulty.LimitBytes(500);
  auto again = NewTrainer();
  const auto result = Run(*again, faulty, std::span(text_).first(30));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::kIo);
  EXPECT_EQ(Bytes(run_.output), before);
}

}  // namespace
}  // namespace kvasir::training
