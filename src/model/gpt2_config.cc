#include "model/gpt2_config.h"

#include <fmt/format.h>

#include "kernels/attention.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<void> CheckRange(std::string_view key, std::uint64_t value, std::uint64_t max) {
  if (value < 1 || value > max) {
    return MakeError(ErrorCode::kBadData, "{} is {}; allowed are 1 to {}", key, value, max);
  }
  return base::Success();
}

}  // namespace

base::Result<void> CheckConfig(const Gpt2Config& config) {
  KV_TRY(CheckRange("gpt2.block_count", config.layers, 512));
  KV_TRY(CheckRange("gpt2.attention.head_count", config.heads, 1024));
  KV_TRY(CheckRange("gpt2.embedding_length", config.embedding, 1u << 16));
  KV_TRY(CheckRange("gpt2.feed_forward_length", config.feed_forward, 1u << 18));
  KV_TRY(CheckRange("gpt2.context_length", config.context, 1u << 20));
  KV_TRY(CheckRange("vocabulary size", config.vocab, 1u << 24));
  if (config.embedding % config.heads != 0) {
    return MakeError(ErrorCode::kBadData,
                     "gpt2.embedding_length {} is not a multiple of gpt2.attention.head_count {}",
                     config.embedding, config.heads);
  }
  if (config.head_dim() > kernels::kMaxHeadDim) {
    return MakeError(ErrorCode::kBadData, "head dimension {} (= {} / {}); at most {} is supported",
                     config.head_dim(), config.embedding, config.heads, kernels::kMaxHeadDim);
  }
  if (!(config.norm_eps > 0.0f && config.norm_eps < 1.0f)) {
    return MakeError(ErrorCode::kBadData,
                     "gpt2.attention.layer_norm_epsilon is {}; it must lie between 0 and 1",
                     config.norm_eps);
  }
  return base::Success();
}

std::vector<TensorSpec> Gpt2Tensors(const Gpt2Config& c) {
  std::vector<TensorSpec> specs;
  specs.push_back({"token_embd.weight", {c.vocab, c.embedding}});
  specs.push_back({"position_embd.weight", {c.context, c.embedding}});
  for (std::uint64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* name, tensor::Shape shape) {
      specs.push_back({fmt::format("blk.{}.{}", i, name), shape});
    };
    add("attn_norm.weight", {c.embedding});
    add("attn_norm.bias", {c.embedding});
    add("attn_qkv.weight", {3 * c.embedding, c.embedding});
    add("attn_qkv.bias", {3 * c.embedding});
    add("attn_output.weight", {c.embedding, c.embedding});
    add("attn_output.bias", {c.embedding});
    add("ffn_norm.weight", {c.embedding});
    add("ffn_norm.bias", {c.embedding});
    add("ffn_up.weight", {c.feed_forward, c.embedding});
    add("ffn_up.bias", {c.feed_forward});
    add("ffn_down.weight", {c.embedding, c.feed_forward});
    add("ffn_down.bias", {c.embedding});
  }
  specs.push_back({"output_norm.weight", {c.embedding}});
  specs.push_back({"output_norm.bias", {c.embedding}});
  if (!c.tied_head) specs.push_back({"output.weight", {c.vocab, c.embedding}});
  return specs;
}

std::uint64_t ParameterCount(const Gpt2Config& config) { return CountNumbers(Gpt2Tensors(config)); }

}  // namespace kvasir::model
