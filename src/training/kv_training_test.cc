// Training for a cache of rounded keys and values: the forward pass is the sampler's under the same
// policy, to the bit, and a step's bits depend on no arrangement.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"
#include "training/trained_policy.h"
#include "training/trainer.h"

namespace kvasir::training {
namespace {

constexpr std::uint64_t kSeed = 20261201;
constexpr std::uint32_t kVocab = 29;

ModelConfig Llama() {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 8;
  config.embedding = 20;
  config.feed_forward = 24;
  config.context = 70;
  config.vocab = kVocab;
  config.windows = {33, 0};
  return config;
}

ModelConfig Gpt2() {
  model::Gpt2Config config;
  config.layers = 2;
  config.heads = 3;
  config.embedding = 24;
  config.feed_forward = 32;
  config.context = 70;
  config.vocab = kVocab;
  return config;
}

struct Case {
  const char* name;
  ModelConfig config;
  const char* spec;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " '" << c.spec << "'"; }
};

class KvTrainingTest : public testing::TestWithParam<Case> {
 protected:
  KvTrainingTest() {
    for (std::uint32_t i = 0; i < 400; ++i) {
      text_.push_back(base::Philox4x32(kSeed, {i, 3, 0, 0})[0] % kVocab);
    }
    options_.steps = 10;
    options_.batch = 4;
    options_.shards = 2;
    options_.micro_batch = 2;
    options_.warmup = 1;
    options_.learning_rate = 1e-2;
    options_.kv = GetParam().spec;
  }

  // Larger weights than usual, so that keys differ and rounding matters.
  std::unique_ptr<Trainer> MakeTrainer(base::ThreadTeam& team) const {
    auto trainer = Trainer::Make(GetParam().config, options_, text_, team).value();
    std::uint32_t i = 0;
    for (float& p : trainer->parameters()) {
      const auto w = base::Philox4x32(kSeed, {i++, 4, 0, 0});
      p += 0.3f * static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
    }
    trainer->ParametersChanged();
    return trainer;
  }

  std::vector<TokenId> text_;
  TrainOptions options_;
};
INSTANTIATE_TEST_SUITE_P(
    Policies, KvTrainingTest,
    testing::Values(Case{"llama", Llama(), "dtype=f16"}, Case{"llama", Llama(), "dtype=bf16"},
                    Case{"llama", Llama(), "dtype=int8"}, Case{"llama", Llama(), "dtype=int4"},
                    Case{"llama", Llama(), "dtype=int4,rotate"},
                    Case{"llama", Llama(), "k=int4,group=16,v=int4"},
                    Case{"llama", Llama(), "k=int4,group=64,v=int8"},
                    Case{"llama", Llama(), "rotate"}, Case{"llama", Llama(), "window=40"},
                    Case{"llama", Llama(), "0.1:dtype=int4;1:v=int8,window=20;1.0:k=int4,group=32"},
                    Case{"gpt2", Gpt2(), "dtype=int4"},
                    Case{"gpt2", Gpt2(), "1.1:k=int4,group=32,rotate,v=int4"},
                    Case{"gpt2", Gpt2(), "store=hidden"}));

TEST_P(KvTrainingTest, LogitsAreTheSamplersBitsUnderThePolicy) {
  base::ThreadTeam team(2);
  const auto trainer = MakeTrainer(team);
  const auto model = GetParam().config.MakeModel(trainer->Source()).value();
  const auto policy = kvcache::CachePolicy::Parse(options_.kv, model->shape().Policy()).value();
  const auto geometry = kvcache::CacheGeometry::Make(model->shape().Cache(64, policy)).value();
  const auto pool = kvcache::BlockPool::Make(geometry, {.budget_bytes = 1 << 22}).value();
  model::Scratch scratch;
  for (const std::size_t length : {1u, 16u, 47u, 70u}) {
    kvcache::CachedSequence sequence(*pool);
    const model::BatchItem item{&sequence, std::span(text_).first(length), length};
    std::vector<float> logits(length * kVocab);
    ASSERT_TRUE(model->Forward(std::span(&item, 1), scratch, team, logits).has_value());
    const std::vector<float> got = trainer->Logits(std::span(text_).first(length));
    ASSERT_EQ(got.size(), logits.size());
    EXPECT_EQ(std::memcmp(got.data(), logits.data(), got.size() * sizeof(float)), 0) << length;
  }
}

TEST_P(KvTrainingTest, ThreadsMicroBatchesAndTargetsGiveTheSameBits) {
  std::vector<float> expected;
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    for (const std::size_t threads : {1u, 3u}) {
      options_.micro_batch = threads == 1 ? 4 : 1;
      base::ThreadTeam team(threads);
      const auto trainer = MakeTrainer(team);
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(trainer->Step().has_value());
      std::vector<float> got(trainer->parameters().begin(), trainer->parameters().end());
      if (expected.empty()) expected = got;
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << target.name << " threads " << threads;
    }
  }
  kernels::UseBestTarget();
}

// Through roundings that are nearly none the gradient is nearly that of the exact function; a part
// that was left out, or not rotated back, would be off by all of itself.
class NearlyExactTest : public KvTrainingTest {};
INSTANTIATE_TEST_SUITE_P(Policies, NearlyExactTest,
                         testing::Values(Case{"llama", Llama(), "dtype=f16"},
                                         Case{"llama", Llama(), "dtype=bf16,rotate"},
                                         Case{"gpt2", Gpt2(), "dtype=int8"},
                                         Case{"llama", Llama(), "rotate"},
                                         Case{"gpt2", Gpt2(), "store=hidden"}));

TEST_P(NearlyExactTest, GradientIsNearTheExactOne) {
  const std::string spec = GetParam().spec;
  const bool exact = spec == "rotate" || spec == "store=hidden";
  base::ThreadTeam team(1);
  std::vector<float> rounded, full;
  ASSERT_TRUE(MakeTrainer(team)->Gradient(rounded).has_value());
  options_.kv = "";
  ASSERT_TRUE(MakeTrainer(team)->Gradient(full).has_value());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    difference += std::pow(double{rounded[i]} - full[i], 2);
    size += std::pow(full[i], 2);
  }
  const double share = std::sqrt(difference / size);
  EXPECT_LT(share, exact ? 1e-5 : 0.05);
  if (!exact) {
    EXPECT_GT(share, 1e-6) << "nothing was rounded";
  }
}

// Errors multiplied by next to nothing more give next to the same gradient; by more, another; and
// none of it reaches an evaluation.
TEST_P(KvTrainingTest, ExaggeratedErrorsGrowFromTheCachesOwn) {
  base::ThreadTeam team(2);
  const auto policy = TrainedPolicy(GetParam().config, options_.kv).value();
  const NetworkPlan plan = PlanOf(GetParam().config, policy);
  const bool rounds = plan.AnyRun([](const HeadRun& run) { return run.rounds(); });
  const bool groups = plan.AnyRun([](const HeadRun& run) { return run.has_groups(); });
  const auto gradient = [&](double error) {
    options_.kv_error = error;
    std::vector<float> flat;
    EXPECT_TRUE(MakeTrainer(team)->Gradient(flat).has_value());
    return flat;
  };
  const auto distance = [](const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(double{a[i]} - b[i], 2);
      size += std::pow(double{a[i]}, 2);
    }
    return std::sqrt(difference / size);
  };
  const auto own = gradient(1), near = gradient(1.00001), far = gradient(3);
  if (!groups) {  // Else queries read keys of their own group rounded too.
    EXPECT_LT(distance(own, near), 1e-3);
  }
  EXPECT_EQ(distance(own, far) > 1e-5, rounds);
  options_.kv_error = 1;
  const auto plain = MakeTrainer(team)->Evaluate(text_);
  options_.kv_error = 3;
  EXPECT_EQ(MakeTrainer(team)->Evaluate(text_).nll, plain.nll);
}

TEST_P(KvTrainingTest, ExaggeratedStepsHaveTheSameBits) {
  options_.kv_error = 2.5;
  std::vector<float> expected;
  for (const std::size_t threads : {1u, 3u}) {
    options_.micro_batch = threads;
    base::ThreadTeam team(threads);
    const auto trainer = MakeTrainer(team);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(trainer->Step().has_value());
    const std::vector<float> got(trainer->parameters().begin(), trainer->parameters().end());
    if (expected.empty()) expected = got;
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << threads;
  }
}

TEST(TrainedPolicy, IsTheSpecsWithTheModelsWindows) {
  const auto full = TrainedPolicy(Llama(), "").value();
  EXPECT_EQ(full.At(0, 0).window, 33u);
  EXPECT_EQ(full.At(1, 0).window, 0u);
  const auto both = TrainedPolicy(Llama(), "window=40;dtype=int8").value();
  EXPECT_EQ(both.At(0, 1).window, 33u);
  EXPECT_EQ(both.At(1, 1).window, 40u);
  EXPECT_EQ(both.At(1, 1).k, kernels::KvType::kInt8);
}

TEST(TrainedPolicy, RefusesWhatCannotBeTrainedFor) {
  const auto refusal = [](const char* spec) {
    const auto policy = TrainedPolicy(Llama(), spec);
    return policy ? "" : policy.error().message;
  };
  EXPECT_NE(refusal("window=8,sinks=2").find("sinks=2 cannot be trained for"), std::string::npos);
  EXPECT_NE(refusal("dtype=int5").find("int5"), std::string::npos);
  EXPECT_NE(refusal("9:dtype=int8").find("9"), std::string::npos);
}

TEST(TrainedPolicy, ErrorsNeedAPolicy) {
  TrainOptions options;
  options.kv_error = 2;
  EXPECT_NE(CheckOptions(options).error().message.find("--kv-error 2 needs"), std::string::npos);
  options.kv = "dtype=int4";
  EXPECT_TRUE(CheckOptions(options).has_value());
  options.kv_error = 17;
  EXPECT_NE(CheckOptions(options).error().message.find("--kv-error 17"), std::string::npos);
}

// A cache that another policy describes is another run; the same one in other words is not.
TEST(TrainedPolicy, BelongsToACheckpoint) {
  base::ThreadTeam team(1);
  const std::vector<TokenId> text(100, 1);
  TrainOptions options;
  options.batch = options.shards = 1;
  options.kv = "dtype=int8";
  BestModel best;
  const std::string path = testing::TempDir() + "/kv_training_checkpoint";
  const auto make = [&] { return Trainer::Make(Llama(), options, text, team).value(); };
  ASSERT_TRUE(make()->SaveCheckpoint(base::Env::Default(), path, best).has_value());
  options.kv = "k=int8,v=int8";
  EXPECT_TRUE(make()->LoadCheckpoint(base::Env::Default(), path, best).has_value());
  options.kv = "dtype=int4";
  EXPECT_FALSE(make()->LoadCheckpoint(base::Env::Default(), path, best).has_value());
  options.kv = "";
  EXPECT_FALSE(make()->LoadCheckpoint(base::Env::Default(), path, best).has_value());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace kvasir::training
