// The Llama family's gradients against PyTorch in float64. The numbers are committed;
// tests/torch/make_llama_fixture.py wrote them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "model/torch_test_arrays.h"
#include "training/network.h"
#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

constexpr double kU = model::kUnitRoundoff;

model::LlamaConfig Small() {
  model::LlamaConfig c;
  c.layers = 2;
  c.embedding = 20;
  c.feed_forward = 24;
  c.vocab = 23;
  c.norm_eps = 1e-5f;
  c.rope.base = 100;
  c.head_dim = c.rope.dimensions = 6;
  return c;
}

// As GRADIENTS of MODELS in the script.
model::LlamaConfig WindowConfig() {
  model::LlamaConfig c = Small();
  c.heads = 4;
  c.kv_heads = 2;
  c.context = 24;
  c.windows = {5, 0};
  return c;
}
model::LlamaConfig Qwen2Config() {
  model::LlamaConfig c = Small();
  c.family = model::LlamaFamily::kQwen2;
  c.rope.pairing = kernels::RopePairing::kHalves;
  c.heads = 3;
  c.kv_heads = 1;
  c.context = 12;
  c.qkv_bias = c.tied_head = true;
  return c;
}

struct Case {
  const char* label;
  model::LlamaConfig config;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.label; }
};

class LlamaTorchTest : public testing::TestWithParam<Case> {
 protected:
  const std::vector<double>& Get(const std::string& kind, const std::string& name) const {
    return arrays_.Get(kind, name);
  }

  struct Result {
    double loss = 0;
    base::AlignedArray<float> gradient;  // flat
  };
  // Mean loss and gradient of every next token of both sequences.
  Result Run(const model::LlamaConfig& config, std::size_t threads) const {
    const ParameterLayout layout{ModelConfig(config)};
    base::AlignedArray<float> parameters(layout.size());
    Result result{0, base::AlignedArray<float>(layout.size())};
    for (const ParameterSlice& slice : layout.slices()) {
      const std::vector<double>& values = Get("weight", slice.name);
      EXPECT_EQ(values.size(), slice.size) << slice.name;
      std::copy(values.begin(), values.end(), parameters.data() + slice.begin);
    }
    const std::vector<double>& tokens = Get("text", "tokens");
    const std::vector<TokenId> text(tokens.begin(), tokens.end());
    const std::vector<std::size_t> starts = {0, config.context};
    const MicroBatch batch{text, starts, config.context - 1, 0};
    std::vector<double> losses(batch.rows());
    base::AlignedArray<float> lookup(config.tied_head ? config.vocab * config.embedding : 0);
    Network network(PlanOf(config, TrainedPolicy(config, "").value()), layout,
                    {.sequences = 2, .members = threads});
    network.Bind(parameters.data(), result.gradient.data());
    base::ThreadTeam team(threads);
    team.Run([&](Member& member) {
      network.Pack(member);
      network.Forward(member, batch, {});
      network.Backward(member, batch, {}, 1.0f / static_cast<float>(batch.rows()), losses.data(),
                       config.tied_head ? lookup.data() : nullptr);
    });
    float* embedding = result.gradient.data() + layout.Find("token_embd.weight").begin;
    for (std::size_t i = 0; i < lookup.size(); ++i) embedding[i] += lookup[i];
    for (const double loss : losses) result.loss += loss / static_cast<double>(losses.size());
    return result;
  }

  // How many roundings lie one after the other on the longest way to a gradient: the reasoning of
  // torch_fixture_test.cc, for this family's operations.
  double Roundings() const {
    const model::LlamaConfig& c = GetParam().config;
    const double norm = 12, norm_grad = 24, turn = 4, silu = 5, silu_grad = 14, softmax = 14;
    const auto width = static_cast<double>(c.embedding);
    const auto middle = static_cast<double>(c.feed_forward);
    const auto positions = static_cast<double>(c.context);
    const auto dim = static_cast<double>(c.head_dim);
    const auto q_width = static_cast<double>(c.q_width());
    const double forward = 2 * norm + width + 1 + turn + dim + 2 * positions + 4 + q_width + 1 +
                           width + silu + 1 + middle + 1;
    const double group = static_cast<double>(c.heads / c.kv_heads);
    const double backward = width + silu_grad + 2 * middle + norm_grad +  // MLP
                            width + dim + softmax + group * positions + turn +
                            static_cast<double>(c.qkv_width()) + norm_grad;
    return static_cast<double>(c.layers) * (forward + backward) + norm + width + softmax +
           static_cast<double>(c.vocab) + norm_grad + 2 * positions;
  }

  // Of all tensors, the largest difference in shares of its bound.
  double WorstShare(const model::LlamaConfig& config) const {
    const Result got = Run(config, 1);
    double worst = 0;
    const ParameterLayout layout{ModelConfig(config)};
    for (const ParameterSlice& slice : layout.slices()) {
      const std::vector<double>& expected = Get("gradient", slice.name);
      const double bound = Roundings() * kU * Get("magnitude", slice.name).at(0);
      for (std::size_t i = 0; i < slice.size; ++i) {
        worst = std::max(worst, std::abs(got.gradient[slice.begin + i] - expected[i]) / bound);
      }
    }
    return worst;
  }

  const model::TorchArrays arrays_{GetParam().label + std::string(".forward.txt"),
                                   GetParam().label + std::string(".gradients.txt")};
};
INSTANTIATE_TEST_SUITE_P(Models, LlamaTorchTest,
                         testing::Values(Case{"llama_window", WindowConfig()},
                                         Case{"qwen2", Qwen2Config()}),
                         [](const auto& param_info) { return param_info.param.label; });

TEST_P(LlamaTorchTest, LossAndGradientsAreTorchs) {
  const Result got = Run(GetParam().config, 2);
  EXPECT_NEAR(got.loss, Get("loss", "mean").at(0),
              2 * Roundings() * kU * Get("magnitude", "logits").at(0));
  double worst = 0;
  const ParameterLayout layout{ModelConfig(GetParam().config)};
  for (const ParameterSlice& slice : layout.slices()) {
    const std::vector<double>& expected = Get("gradient", slice.name);
    ASSERT_EQ(expected.size(), slice.size) << slice.name;
    const double bound = Roundings() * kU * Get("magnitude", slice.name).at(0);
    double largest = 0;
    for (std::size_t i = 0; i < slice.size; ++i) {
      const double difference = std::abs(got.gradient[slice.begin + i] - expected[i]);
      ASSERT_LE(difference, bound) << slice.name << " " << i << ": " << expected[i];
      worst = std::max(worst, difference / bound);
      largest = std::max(largest, std::abs(expected[i]));
    }
    // A gradient of nothing but zeros would pass too where the bound is wide.
    EXPECT_GT(largest, 30 * bound) << slice.name;
  }
  RecordProperty("share_of_bound", std::to_string(worst));
}

// That the bounds are narrow enough to be worth having.
TEST_P(LlamaTorchTest, AnotherSettingWouldBeSeen) {
  const auto seen = [&](const auto& change) {
    model::LlamaConfig config = GetParam().config;
    change(config);
    return WorstShare(config) > 1;
  };
  EXPECT_TRUE(seen([](model::LlamaConfig& c) { c.norm_eps *= 2; }));
  EXPECT_TRUE(seen([](model::LlamaConfig& c) { c.rope.base *= 1.01f; }));
  if (GetParam().config.windows.empty()) return;
  EXPECT_TRUE(seen([](model::LlamaConfig& c) { c.windows[0] += 1; }));
}

}  // namespace
}  // namespace kvasir::training
