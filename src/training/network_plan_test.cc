#include "training/network_plan.h"

#include <gtest/gtest.h>

#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

model::LlamaConfig Llama() {
  model::LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 8;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 10;
  config.vocab = 100;
  return config;
}

NetworkPlan Plan(const ModelConfig& config, const char* spec = "") {
  return PlanOf(config, TrainedPolicy(config, spec).value());
}

TEST(NetworkPlan, NamesTheTensorsThatThereAre) {
  model::Gpt2Config gpt2;
  gpt2.vocab = 10;
  for (const ModelConfig& config : {ModelConfig(gpt2), ModelConfig(Llama())}) {
    const NetworkPlan plan = Plan(config);
    const auto has = [&](const std::string& name) {
      for (const model::TensorSpec& spec : config.Tensors()) {
        if (spec.name == name + ".weight") return true;
      }
      return false;
    };
    for (std::size_t layer = 0; layer < plan.layers; ++layer) {
      for (const BranchPlan& branch : {plan.AttentionBranch(layer), plan.MlpBranch(layer)}) {
        EXPECT_TRUE(has(branch.norm) && has(branch.first) && has(branch.last)) << branch.first;
      }
    }
  }
}

TEST(NetworkPlan, CutsHeadsIntoRunsOfOnePolicy) {
  const NetworkPlan plan = Plan(Llama(), "1.1:dtype=int4,window=5");
  ASSERT_EQ(plan.runs.size(), 2u);
  ASSERT_EQ(plan.runs[0].size(), 1u);
  EXPECT_EQ(plan.runs[0][0].count, 2u);
  EXPECT_FALSE(plan.runs[0][0].rounds());
  EXPECT_EQ(plan.runs[0][0].window(), kernels::kNoWindow);
  ASSERT_EQ(plan.runs[1].size(), 2u);
  EXPECT_EQ(plan.runs[1][1].first, 1u);
  EXPECT_EQ(plan.runs[1][1].count, 1u);
  EXPECT_TRUE(plan.runs[1][1].rounds());
  EXPECT_EQ(plan.runs[1][1].window(), 5u);
}

TEST(NetworkPlan, CountsTheWorkOfAStep) {
  // A layer's matrices: qkv 24 · 64, output 24 · 32, gate, up and down 3 · 24 · 40; the head.
  const double matrices = 2 * (24 * 64 + 24 * 32 + 3 * 24 * 40) + 24 * 100;
  // 10 positions see 55; of each 32 channels of scores and as many of values, in both layers.
  EXPECT_EQ(StepFlops(Plan(Llama())), 6 * (10 * matrices + 2 * 55 * 64));
  // With a window of 3 in the second layer its positions see 1 + 2 + 8 · 3.
  model::LlamaConfig windowed = Llama();
  windowed.windows = {0, 3};
  EXPECT_EQ(StepFlops(Plan(windowed)), 6 * (10 * matrices + (55 + 27) * 64));
}

}  // namespace
}  // namespace kvasir::training
