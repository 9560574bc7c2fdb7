// The trainer against finite differences, against itself under other threads, micro-batches and
// interruptions, and against the sampler's forward pass.
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/faulty_env.h"
#include "base/philox.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"

namespace kvasir::training {
namespace {

constexpr std::uint64_t kSeed = 20261130;

ModelConfig TinyGpt2(bool tied = false) {
  model::Gpt2Config config;
  config.layers = 2;
  config.heads = 2;
  config.embedding = 12;
  config.feed_forward = 20;
  config.context = 10;
  config.vocab = 23;
  config.tied_head = tied;
  return config;
}

// Two query heads to a kv head, whose rows do not end on a cache line; a window in one layer.
ModelConfig TinyLlama() {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 6;
  config.embedding = 14;
  config.feed_forward = 20;
  config.context = 10;
  config.vocab = 23;
  config.rope.base = 100;
  config.windows = {4, 0};
  return config;
}

// All that TinyLlama is not: multi-query, tied, partly turned by halves, with biases.
ModelConfig TinyQwen2() {
  model::LlamaConfig config = *TinyLlama().llama();
  config.family = model::LlamaFamily::kQwen2;
  config.kv_heads = 1;
  config.rope.pairing = kernels::RopePairing::kHalves;
  config.rope.dimensions = 4;
  config.windows.clear();
  config.qkv_bias = config.tied_head = true;
  return config;
}

struct Case {
  const char* name;
  ModelConfig config;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

TrainOptions TinyOptions() {
  TrainOptions options;
  options.seed = kSeed;
  options.steps = 20;
  options.batch = 6;
  options.shards = 2;
  options.micro_batch = 2;
  options.warmup = 3;
  options.learning_rate = 1e-2;
  return options;
}

std::vector<TokenId> RandomText(std::size_t tokens, std::uint32_t vocab) {
  std::vector<TokenId> text(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    text[i] = base::Philox4x32(kSeed, {static_cast<std::uint32_t>(i), 1, 0, 0})[0] % vocab;
  }
  return text;
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Larger starting values than usual, so that every gradient is well above rounding.
void Scramble(Trainer& trainer) {
  std::size_t i = 0;
  for (float& p : trainer.parameters()) {
    const auto w = base::Philox4x32(kSeed, {static_cast<std::uint32_t>(i++), 2, 0, 0});
    p += 0.3f * static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
  }
  trainer.ParametersChanged();
}

class TrainerTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Models, TrainerTest,
                         testing::Values(Case{"untied", TinyGpt2()}, Case{"tied", TinyGpt2(true)},
                                         Case{"llama", TinyLlama()}, Case{"qwen2", TinyQwen2()}),
                         [](const auto& param_info) { return param_info.param.name; });

// Central differences in f64 steps of h: error h²·f''' / 6 + rounding of the f32 loss / h.
TEST_P(TrainerTest, GradientsMatchFiniteDifferences) {
  const ModelConfig& config = GetParam().config;
  const auto text = RandomText(200, 23);
  base::ThreadTeam team(1);
  for (double dropout : {0.0, 0.2}) {
    TrainOptions options = TinyOptions();
    options.dropout = dropout;
    auto trainer = Trainer::Make(config, options, text, team).value();
    Scramble(*trainer);
    std::vector<float> gradient, unused;
    ASSERT_TRUE(trainer->Gradient(gradient).has_value());
    std::size_t checked = 0;
    for (const ParameterSlice& slice : trainer->layout().slices()) {
      for (std::size_t n = 0; n < 6; ++n) {
        const std::size_t i = slice.begin + (n * 7919 + 13) % slice.size;
        float& p = trainer->parameters()[i];
        const float saved = p;
        constexpr float kStep = 4e-3f;
        p = saved + kStep;
        trainer->ParametersChanged();
        const double above = trainer->Gradient(unused).value();
        const float high = p;
        p = saved - kStep;
        trainer->ParametersChanged();
        const double below = trainer->Gradient(unused).value();
        const double numeric = (above - below) / (double{high} - double{p});
        p = saved;
        EXPECT_NEAR(gradient[i], numeric, 2e-3 * std::abs(numeric) + 3e-4)
            << slice.name << " " << i - slice.begin << " dropout " << dropout << " seed " << kSeed;
        ++checked;
      }
    }
    EXPECT_GT(checked, 100u);
  }
}

TEST_P(TrainerTest, ThreadsMicroBatchesAndTargetsGiveTheSameBits) {
  const ModelConfig& config = GetParam().config;
  const auto text = RandomText(300, 23);
  std::vector<float> expected;
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    for (std::size_t threads : {1u, 2u, 3u}) {
      for (std::size_t micro : {1u, 2u, 6u}) {
        TrainOptions options = TinyOptions();
        options.micro_batch = micro;
        options.dropout = 0.1;
        base::ThreadTeam team(threads);
        auto trainer = Trainer::Make(config, options, text, team).value();
        for (int i = 0; i < 4; ++i) ASSERT_TRUE(trainer->Step().has_value());
        if (expected.empty()) expected = Copy(trainer->parameters());
        EXPECT_TRUE(SameBits(expected, Copy(trainer->parameters())))
            << target.name << " threads " << threads << " micro " << micro;
      }
    }
  }
  kernels::UseBestTarget();
}

TEST_P(TrainerTest, RecomputedActivationsGiveTheSameBits) {
  const auto text = RandomText(300, 23);
  base::ThreadTeam team(2);
  std::vector<float> kept, again;
  for (std::vector<float>* parameters : {&kept, &again}) {
    TrainOptions options = TinyOptions();
    options.dropout = 0.1;
    options.recompute = parameters == &again;
    auto trainer = Trainer::Make(GetParam().config, options, text, team).value();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().has_value());
    *parameters = Copy(trainer->parameters());
  }
  EXPECT_TRUE(SameBits(kept, again));
}

TEST_P(TrainerTest, LogitsAreTheSamplersBits) {
  const ModelConfig& config = GetParam().config;
  const auto text = RandomText(300, 23);
  base::ThreadTeam team(2);
  auto trainer = Trainer::Make(config, TinyOptions(), text, team).value();
  Scramble(*trainer);
  auto model = config.MakeModel(trainer->Source()).value();
  auto geometry = kvcache::CacheGeometry::Make(model->shape().Cache(16)).value();
  auto pool = kvcache::BlockPool::Make(geometry, {.budget_bytes = 1 << 20}).value();
  model::Scratch scratch;
  for (std::size_t length : {1u, 3u, 10u}) {
    kvcache::CachedSequence sequence(*pool);
    const model::BatchItem item{&sequence, std::span(text).first(length), length};
    std::vector<float> logits(length * config.vocab());
    ASSERT_TRUE(model->Forward(std::span(&item, 1), scratch, team, logits).has_value());
    EXPECT_TRUE(SameBits(logits, trainer->Logits(std::span(text).first(length))));
  }
}

TEST(Trainer, ResumesToTheBitsOfAnUnbrokenRun) {
  const ModelConfig config = TinyGpt2();
  const auto text = RandomText(300, 23);
  TrainOptions options = TinyOptions();
  options.dropout = 0.1;
  base::ThreadTeam team(1);
  const std::string path = testing::TempDir() + "/trainer_test_checkpoint";
  auto whole = Trainer::Make(config, options, text, team).value();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(whole->Step().has_value());
  auto first = Trainer::Make(config, options, text, team).value();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(first->Step().has_value());
  BestModel best, read;
  best.held_out = read.held_out = std::span(text).first(50);
  best.Reserve(first->layout().size());
  ASSERT_TRUE(best.Offer(4, 1.25, first->parameters()));
  ASSERT_TRUE(first->SaveCheckpoint(base::Env::Default(), path, best).has_value());
  auto second = Trainer::Make(config, options, text, team).value();
  ASSERT_TRUE(second->LoadCheckpoint(base::Env::Default(), path, read).has_value());
  EXPECT_EQ(second->steps_done(), 4u);
  EXPECT_EQ(read.loss, 1.25);
  EXPECT_EQ(read.step, 4u);
  EXPECT_TRUE(SameBits(Copy(read.parameters.span()), Copy(first->parameters())));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(second->Step().has_value());
  EXPECT_TRUE(SameBits(Copy(whole->parameters()), Copy(second->parameters())));

  // Another setting, another text, a flipped bit, a cut file: refused, and nothing changed.
  const auto before = Copy(second->parameters());
  const auto refusal = [&](std::span<const TokenId> held_out, std::uint64_t every) {
    BestModel judged;
    judged.held_out = held_out;
    judged.eval_every = every;
    const auto loaded = second->LoadCheckpoint(base::Env::Default(), path, judged);
    EXPECT_FALSE(judged.measured());
    return loaded ? std::string() : loaded.error().message;
  };
  EXPECT_NE(refusal(read.held_out, 9).find("--eval-every 250, not 9"), std::string::npos);
  EXPECT_NE(refusal(read.held_out.first(49), 250).find("another held-out text"), std::string::npos);
  EXPECT_NE(refusal({}, 250).find("a run with a held-out text"), std::string::npos);
  options.weight_decay = 0.2;
  auto other = Trainer::Make(config, options, text, team).value();
  EXPECT_FALSE(other->LoadCheckpoint(base::Env::Default(), path, read).has_value());
  const auto other_text = RandomText(301, 23);
  auto third = Trainer::Make(config, TinyOptions(), other_text, team).value();
  EXPECT_FALSE(third->LoadCheckpoint(base::Env::Default(), path, read).has_value());
  std::string bytes(base::Env::Default().Map(path).value()->text());
  for (std::size_t cut : {bytes.size() / 2, bytes.size() - 3}) {
    base::FaultyEnv faulty(base::Env::Default());
    faulty.TruncateReads(cut);
    EXPECT_FALSE(second->LoadCheckpoint(faulty, path, read).has_value());
  }
  // The lowest byte of the number of steps done: metadata is covered too.
  const std::string key = "checkpoint.steps_done";
  std::string other_steps = bytes;
  other_steps[bytes.find(key) + key.size() + 4] ^= 1;
  ASSERT_TRUE(base::WriteFileAtomic(base::Env::Default(), path, other_steps).has_value());
  EXPECT_FALSE(second->LoadCheckpoint(base::Env::Default(), path, read).has_value());
  bytes[bytes.size() - 100] ^= 1;
  ASSERT_TRUE(base::WriteFileAtomic(base::Env::Default(), path, bytes).has_value());
  EXPECT_FALSE(second->LoadCheckpoint(base::Env::Default(), path, read).has_value());
  EXPECT_TRUE(SameBits(before, Copy(second->parameters())));
  std::filesystem::remove(path);
}

// Case C155: how often one evaluates changes nothing.
TEST(Trainer, EvaluationLeavesTrainingAlone) {
  const auto text = RandomText(300, 23);
  TrainOptions options = TinyOptions();
  options.dropout = 0.1;
  base::ThreadTeam team(1);
  auto plain = Trainer::Make(TinyGpt2(), options, text, team).value();
  auto evaluated = Trainer::Make(TinyGpt2(), options, text, team).value();
  for (int i = 0; i < 5; ++i) {
    const double a = plain->Step().value().loss;
    evaluated->Evaluate(std::span(text).first(77));
    EXPECT_EQ(a, evaluated->Step().value().loss);
  }
  EXPECT_TRUE(SameBits(Copy(plain->parameters()), Copy(evaluated->parameters())));
  // 77 tokens: 76 predictions, in windows of 10.
  const Evaluation all = plain->Evaluate(std::span(text).first(77));
  EXPECT_EQ(all.tokens, 76u);
  double sum = 0;
  for (std::size_t start = 0; start < 76; start += 10) {
    const std::size_t length = std::min<std::size_t>(10, 76 - start);
    const Evaluation part = plain->Evaluate(std::span(text).subspan(start, length + 1));
    sum += part.nll * static_cast<double>(part.tokens);
  }
  EXPECT_NEAR(all.nll, sum / 76, 1e-12);
}

// Case C153: with zero gradients exactly the matrices and embeddings shrink.
TEST(Trainer, WeightDecayActsOnMatricesOnly) {
  const ParameterLayout layout(TinyGpt2());
  for (const ParameterSlice& slice : layout.slices()) {
    const bool vector = slice.name.find("norm") != std::string::npos ||
                        slice.name.find(".bias") != std::string::npos;
    EXPECT_EQ(slice.decays, !vector) << slice.name;
  }
}

TEST(Trainer, StopsBeforeWeightsAreTouchedByANonFiniteNumber) {
  const auto text = RandomText(300, 23);
  base::ThreadTeam team(1);
  auto trainer = Trainer::Make(TinyGpt2(), TinyOptions(), text, team).value();
  ASSERT_TRUE(trainer->Step().has_value());
  trainer->parameters()[3] = 3e38f;
  trainer->parameters()[4] = -3e38f;
  trainer->ParametersChanged();
  const auto before = Copy(trainer->parameters());
  const auto result = trainer->Step();
  if (!result.has_value()) {
    EXPECT_NE(result.error().message.find("step 2"), std::string::npos);
    EXPECT_TRUE(SameBits(before, Copy(trainer->parameters())));
  }
  trainer->parameters()[3] = NAN;
  trainer->ParametersChanged();
  EXPECT_FALSE(trainer->Step().has_value());
  EXPECT_EQ(trainer->steps_done(), result.has_value() ? 2u : 1u);
}

TEST(Trainer, LearnsARepeatingText) {
  std::vector<TokenId> text;
  for (int i = 0; i < 400; ++i) text.push_back(static_cast<TokenId>(i % 7));
  TrainOptions options = TinyOptions();
  options.steps = 120;
  base::ThreadTeam team(1);
  auto trainer = Trainer::Make(TinyGpt2(), options, text, team).value();
  const double before = trainer->Evaluate(text).nll;
  for (int i = 0; i < 120; ++i) ASSERT_TRUE(trainer->Step().has_value());
  EXPECT_GT(before, 2.5);
  EXPECT_LT(trainer->Evaluate(text).nll, 0.2);
}

TEST(Trainer, RefusesBadSettings) {
  base::ThreadTeam team(1);
  const auto text = RandomText(300, 23);
  const auto error = [&](const TrainOptions& options, std::span<const TokenId> tokens) {
    const auto result = Trainer::Make(TinyGpt2(), options, tokens, team);
    return result ? std::string() : result.error().message;
  };
  TrainOptions options = TinyOptions();
  EXPECT_NE(error(options, std::span(text).first(10)).find("10 tokens"), std::string::npos);
  options.dropout = NAN;
  EXPECT_NE(error(options, text).find("--dropout nan"), std::string::npos);
  options = TinyOptions();
  options.shards = 7;
  EXPECT_NE(error(options, text).find("--shards 7"), std::string::npos);
  const std::vector<TokenId> outside(300, 23);
  EXPECT_NE(error(TinyOptions(), outside).find("23"), std::string::npos);
}

TEST(LearningRate, WarmsUpAndFallsToItsShare) {
  TrainOptions options;
  options.steps = 1000;
  options.warmup = 100;
  options.learning_rate = 2e-3;
  EXPECT_NEAR(LearningRate(options, 0), 2e-3 / 101, 1e-12);
  EXPECT_EQ(LearningRate(options, 100), 2e-3);
  EXPECT_NEAR(LearningRate(options, 550), 2e-3 * (0.05 + 0.95 * 0.5), 1e-12);
  EXPECT_NEAR(LearningRate(options, 1000), 1e-4, 1e-12);
}

}  // namespace
}  // namespace kvasir::training
