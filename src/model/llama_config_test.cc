#include "model/llama_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/model_test_util.h"

namespace kvasir::model {
namespace {

TEST(LlamaConfig, PublishedModelsHaveTheirParameters) {
  LlamaConfig llama3;  // Llama 3.1 8B
  llama3.layers = 32;
  llama3.heads = 32;
  llama3.kv_heads = 8;
  llama3.head_dim = llama3.rope.dimensions = 128;
  llama3.embedding = 4096;
  llama3.feed_forward = 14336;
  llama3.context = 131072;
  llama3.vocab = 128256;
  llama3.rope.base = 500000;
  EXPECT_TRUE(CheckConfig(llama3).has_value());
  EXPECT_EQ(ParameterCount(llama3), 8030261248u);
  LlamaConfig qwen2 = llama3;  // Qwen2.5 0.5B
  qwen2.family = LlamaFamily::kQwen2;
  qwen2.layers = 24;
  qwen2.heads = 14;
  qwen2.kv_heads = 2;
  qwen2.head_dim = qwen2.rope.dimensions = 64;
  qwen2.embedding = 896;
  qwen2.feed_forward = 4864;
  qwen2.context = 32768;
  qwen2.vocab = 151936;
  qwen2.qkv_bias = qwen2.tied_head = true;
  EXPECT_TRUE(CheckConfig(qwen2).has_value());
  EXPECT_EQ(ParameterCount(qwen2), 494032768u);
  LlamaConfig qwen3 = qwen2;  // Qwen3 0.6B
  qwen3.family = LlamaFamily::kQwen3;
  qwen3.layers = 28;
  qwen3.heads = 16;
  qwen3.kv_heads = 8;
  qwen3.head_dim = qwen3.rope.dimensions = 128;
  qwen3.embedding = 1024;
  qwen3.feed_forward = 3072;
  qwen3.qkv_bias = false;
  qwen3.head_norms = true;
  EXPECT_TRUE(CheckConfig(qwen3).has_value());
  EXPECT_EQ(ParameterCount(qwen3), 596049920u);
}

TEST(LlamaConfig, RefusesWhatCannotRun) {
  const auto message = [](const std::function<void(LlamaConfig&)>& change) {
    LlamaConfig config = TestLlamaConfig();
    change(config);
    const auto result = CheckConfig(config);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_NE(message([](auto& c) { c.windows = {5}; }).find("1 layers; there are 2"),
            std::string::npos);
  EXPECT_NE(message([](auto& c) {
              c.windows = {5, 6};
            }).find("5 in one layer and 6"),
            std::string::npos);
  EXPECT_NE(message([](auto& c) { c.vocab = 0; }).find("vocabulary size is 0"), std::string::npos);
  EXPECT_NE(message([](auto& c) {
              c.rope.divisors = {1, 2};
            }).find("2 numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace kvasir::model
