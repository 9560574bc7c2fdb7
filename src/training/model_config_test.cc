#include "training/model_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace kvasir::training {
namespace {

model::LlamaConfig Llama() {
  model::LlamaConfig config;
  config.vocab = 50;
  config.windows = {8, 0, 8, 0};
  return config;
}

TEST(ModelConfig, SpeaksForBothArchitectures) {
  model::Gpt2Config gpt2;
  gpt2.vocab = 50;
  const ModelConfig first = gpt2, second = Llama();
  EXPECT_EQ(first.architecture(), "gpt2");
  EXPECT_EQ(second.architecture(), "llama");
  EXPECT_EQ(first.ParameterCount(), model::ParameterCount(gpt2));
  EXPECT_EQ(second.ParameterCount(), model::ParameterCount(Llama()));
  EXPECT_EQ(first.kv_heads(), 4u);
  EXPECT_EQ(first.head_dim(), 32u);
  EXPECT_TRUE(first.Check().has_value());
  EXPECT_TRUE(second.Check().has_value());
}

TEST(ModelConfig, RefusesWhatCannotBeTrained) {
  model::LlamaConfig config = Llama();
  config.family = model::LlamaFamily::kQwen3;
  config.head_norms = true;
  const auto refused = ModelConfig(config).Check();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("qwen3 cannot be trained"), std::string::npos);
  config = Llama();
  config.kv_heads = 3;
  EXPECT_FALSE(ModelConfig(config).Check().has_value());
}

// Whatever decides a bit decides the fingerprint.
TEST(ModelConfig, FingerprintsTellAllShapesApart) {
  const std::vector<std::function<void(model::LlamaConfig&)>> changes = {
      [](auto&) {},
      [](auto& c) { c.family = model::LlamaFamily::kQwen2; },
      [](auto& c) { c.layers = 5; },
      [](auto& c) { c.heads = 8; },
      [](auto& c) { c.kv_heads = 2; },
      [](auto& c) { c.head_dim = 16; },
      [](auto& c) { c.embedding = 64; },
      [](auto& c) { c.feed_forward = 64; },
      [](auto& c) { c.context = 64; },
      [](auto& c) { c.vocab = 64; },
      [](auto& c) { c.norm_eps = 1e-6f; },
      [](auto& c) { c.tied_head = true; },
      [](auto& c) { c.qkv_bias = true; },
      [](auto& c) { c.rope.pairing = kernels::RopePairing::kHalves; },
      [](auto& c) { c.rope.dimensions = 16; },
      [](auto& c) { c.rope.base = 500; },
      [](auto& c) { c.rope.factor = 2; },
      [](auto& c) { c.rope.divisors.assign(16, 1.5f); },
      [](auto& c) { c.rope.divisors.assign(16, 2.0f); },
      [](auto& c) { c.windows = {}; },
      [](auto& c) {
        c.windows = {0, 8, 8, 0};
      },
      [](auto& c) {
        c.windows = {9, 0, 9, 0};
      },
  };
  model::Gpt2Config gpt2;
  gpt2.vocab = 50;
  std::set<std::vector<std::uint64_t>> seen = {ModelConfig(gpt2).Fingerprint()};
  for (const auto& change : changes) {
    model::LlamaConfig config = Llama();
    change(config);
    EXPECT_TRUE(seen.insert(ModelConfig(config).Fingerprint()).second) << seen.size();
  }
}

}  // namespace
}  // namespace kvasir::training
