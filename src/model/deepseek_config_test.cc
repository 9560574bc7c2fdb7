#include "model/deepseek_config.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kvasir::model {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

DeepseekConfig Small() {
  DeepseekConfig config;
  config.vocab = 100;
  return config;
}

std::string Refusal(const DeepseekConfig& config) {
  const base::Result<void> checked = CheckConfig(config);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, base::ErrorCode::kBadData);
  EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
  return checked.error().message;
}

// DeepSeek-V2-Lite's layer 0, the one that is dense: what its published tensors hold.
TEST(DeepseekConfigTest, CountsThePublishedDenseLayer) {
  DeepseekConfig lite = Small();
  lite.layers = 1;
  lite.heads = 16;
  lite.embedding = 2048;
  lite.feed_forward = 10944;
  lite.latent_dim = 512;
  lite.nope_dim = 128;
  lite.value_dim = 128;
  lite.rope.dimensions = 64;
  lite.vocab = 102400;
  ASSERT_EQ(Refusal(lite), "");
  const std::uint64_t attention = 3072u * 2048  // q_proj
                                  + 576u * 2048 + 512 + 4096u * 512 + 2048u * 2048;
  const std::uint64_t mlp = 3u * 10944 * 2048;
  const std::uint64_t around = 2u * 102400 * 2048 + 3 * 2048;  // Embedding, head, norms.
  EXPECT_EQ(ParameterCount(lite), attention + mlp + around);
  EXPECT_EQ(lite.key_dim(), 192u);
  EXPECT_EQ(lite.entry_dim(), 576u);
}

TEST(DeepseekConfigTest, BothFormsOfTheUpProjectionHoldAsManyNumbers) {
  DeepseekConfig config = Small();
  const std::uint64_t joint = ParameterCount(config);
  config.split_up = true;
  EXPECT_EQ(ParameterCount(config), joint);
  config.query_rank = 24;
  config.tied_head = true;
  bool has_query_norm = false;
  for (const TensorSpec& spec : DeepseekTensors(config)) {
    has_query_norm |= spec.name == "blk.3.attn_q_a_norm.weight";
    EXPECT_NE(spec.name, "blk.0.attn_q.weight");
    EXPECT_NE(spec.name, "output.weight");
    if (spec.name == "blk.0.attn_k_b.weight") {
      EXPECT_EQ(spec.shape, (tensor::Shape{4, 64, 32}));
    }
    if (spec.name == "blk.0.attn_v_b.weight") {
      EXPECT_EQ(spec.shape, (tensor::Shape{4, 32, 64}));
    }
  }
  EXPECT_TRUE(has_query_norm);
}

TEST(DeepseekConfigTest, RefusalsNameTheKeyTheValueAndTheLimit) {
  EXPECT_EQ(Refusal(Small()), "");
  const auto expect = [](std::uint64_t DeepseekConfig::*field, std::uint64_t value,
                         const std::string& key, const std::string& allowed) {
    DeepseekConfig config = Small();
    config.*field = value;
    const std::string message = Refusal(config);
    EXPECT_NE(message.find(key), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(value)), std::string::npos) << message;
    EXPECT_NE(message.find(allowed), std::string::npos) << message;
  };
  for (const std::uint64_t bad : {std::uint64_t{0}, kHuge}) {
    expect(&DeepseekConfig::layers, bad, "deepseek2.block_count", "1 to 512");
    expect(&DeepseekConfig::heads, bad, "deepseek2.attention.head_count", "1 to 1024");
    expect(&DeepseekConfig::embedding, bad, "deepseek2.embedding_length", "1 to 65536");
    expect(&DeepseekConfig::feed_forward, bad, "deepseek2.feed_forward_length", "1 to 262144");
    expect(&DeepseekConfig::context, bad, "deepseek2.context_length", "1 to ");
    expect(&DeepseekConfig::vocab, bad, "vocabulary size", "1 to ");
    expect(&DeepseekConfig::latent_dim, bad, "deepseek2.attention.kv_lora_rank", "1 to 512");
    expect(&DeepseekConfig::value_dim, bad, "deepseek2.attention.value_length", "1 to 1024");
    expect(&DeepseekConfig::nope_dim, bad, "deepseek2.attention.key_length", "1 to 960");
  }
  expect(&DeepseekConfig::latent_dim, 513, "deepseek2.attention.kv_lora_rank", "1 to 512");
  expect(&DeepseekConfig::query_rank, kHuge, "deepseek2.attention.q_lora_rank", "0 (none) to");
}

TEST(DeepseekConfigTest, RefusesRotationsThatCannotBe) {
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{66}, kHuge}) {
    DeepseekConfig config = Small();
    config.rope.dimensions = bad;
    const std::string message = Refusal(config);
    EXPECT_NE(message.find("deepseek2.rope.dimension_count is " + std::to_string(bad)),
              std::string::npos)
        << message;
  }
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    DeepseekConfig config = Small();
    config.rope.base = bad;
    EXPECT_NE(Refusal(config).find("deepseek2.rope.freq_base"), std::string::npos);
    config = Small();
    config.norm_eps = bad;
    EXPECT_NE(Refusal(config).find("layer_norm_rms_epsilon"), std::string::npos);
  }
}

}  // namespace
}  // namespace kvasir::model
