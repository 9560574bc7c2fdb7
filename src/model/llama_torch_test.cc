// The Llama family against PyTorch in float64. The numbers are committed;
// tests/torch/make_llama_fixture.py wrote them.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "model/llama_model.h"
#include "model/torch_test_fixture.h"

namespace kvasir::model {
namespace {

LlamaConfig Small(LlamaFamily family, std::uint64_t heads, std::uint64_t kv_heads,
                  std::uint64_t head_dim) {
  LlamaConfig c;
  c.family = family;
  c.layers = 2;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = c.rope.dimensions = head_dim;
  c.embedding = 20;
  c.feed_forward = 24;
  c.context = 12;
  c.vocab = 23;
  c.norm_eps = 1e-5f;
  c.rope.base = 100;
  c.rope.pairing = PairingOf(family);
  return c;
}

// As MODELS in the script.
struct Case {
  const char* label;
  std::function<LlamaConfig()> config;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.label; }
};
const Case kCases[] = {
    {"llama", [] { return Small(LlamaFamily::kLlama, 4, 2, 6); }},
    {"llama_linear",
     [] {
       LlamaConfig c = Small(LlamaFamily::kLlama, 3, 3, 4);
       c.rope.factor = 2.5f;
       return c;
     }},
    {"llama_llama3",
     [] {
       LlamaConfig c = Small(LlamaFamily::kLlama, 4, 2, 8);
       c.rope.divisors = Llama3Divisors({.factor = 4, .original_context = 64}, c.rope.base, 8);
       return c;
     }},
    {"llama_window",
     [] {
       LlamaConfig c = Small(LlamaFamily::kLlama, 4, 2, 6);
       c.context = 24;
       c.windows = {5, 0};
       return c;
     }},
    {"qwen2",
     [] {
       LlamaConfig c = Small(LlamaFamily::kQwen2, 3, 1, 6);
       c.qkv_bias = c.tied_head = true;
       return c;
     }},
    {"qwen3",
     [] {
       LlamaConfig c = Small(LlamaFamily::kQwen3, 4, 2, 8);
       c.head_norms = true;
       c.rope.dimensions = 6;
       return c;
     }},
};

class LlamaTorchTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config_ = GetParam().config();
    ASSERT_TRUE(CheckConfig(config_).has_value());
  }

  double LargestDifference(const LlamaConfig& config) const {
    return fixture_.LargestDifference<LlamaModel>(config);
  }

  // How many roundings lie one after the other on the longest way to a logit, times the sum of
  // absolute terms of its last sum: the reasoning of training/torch_fixture_test.cc. (First order;
  // what cancellation could add in the worst case the model leaves out.)
  double Bound() const {
    const LlamaConfig& c = config_;
    const double norm = 12;  // A lane sum and its fold, division, root, division, two products.
    const double turn = 4;   // An angle's cosine rounded to f32, product, fma.
    const double silu = 5;
    const auto width = static_cast<double>(c.embedding);
    const double query = width + (c.qkv_bias ? 1 : 0) + (c.head_norms ? norm : 0) + turn;
    const double attention =
        query + static_cast<double>(c.head_dim) + 2 * static_cast<double>(c.context) + 4;
    const double layer = 2 * norm + attention + static_cast<double>(c.q_width()) + 1 + width +
                         silu + 1 + static_cast<double>(c.feed_forward) + 1;
    const double roundings = static_cast<double>(c.layers) * layer + norm + width;
    return roundings * kUnitRoundoff * fixture_.Get("magnitude", "logits").at(0);
  }

  LlamaConfig config_;
  const TorchFixture fixture_{GetParam().label};
};
INSTANTIATE_TEST_SUITE_P(Models, LlamaTorchTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.label; });

TEST_P(LlamaTorchTest, LogitsAreTorchs) {
  const double largest = LargestDifference(config_);
  RecordProperty("share_of_bound", std::to_string(largest / Bound()));
  EXPECT_LE(largest, Bound());
  EXPECT_GT(largest, 0.0) << "compares nothing";
}

// That the bound is narrow enough to be worth having.
TEST_P(LlamaTorchTest, AnotherSettingWouldBeSeen) {
  const auto seen = [&](const std::function<void(LlamaConfig&)>& change) {
    LlamaConfig config = config_;
    change(config);
    return LargestDifference(config) > Bound();
  };
  EXPECT_TRUE(seen([](LlamaConfig& c) { c.norm_eps *= 2; }));
  EXPECT_TRUE(seen([](LlamaConfig& c) { c.rope.base *= 1.01f; }));
  EXPECT_TRUE(seen([](LlamaConfig& c) { c.rope.factor *= 1.01f; }));
  EXPECT_TRUE(seen([](LlamaConfig& c) {
    c.rope.pairing = c.rope.pairing == kernels::RopePairing::kHalves
                         ? kernels::RopePairing::kNeighbours
                         : kernels::RopePairing::kHalves;
  }));
  if (!config_.windows.empty()) {
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.windows[0] += 1; }));
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.windows[0] -= 1; }));
  }
  if (!config_.rope.divisors.empty()) {
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.rope.divisors.clear(); }));
  }
  if (config_.rope.dimensions != config_.head_dim) {
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.rope.dimensions = c.head_dim; }));
  }
  if (config_.head_norms) {
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.head_norms = false; }));
  }
  if (config_.qkv_bias) {
    EXPECT_TRUE(seen([](LlamaConfig& c) { c.qkv_bias = false; }));
  }
}

}  // namespace
}  // namespace kvasir::model
