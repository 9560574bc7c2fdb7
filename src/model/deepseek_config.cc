#include "model/deepseek_config.h"

#include <fmt/format.h>

#include <string_view>

#include "kernels/latent_attention.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<void> CheckRange(std::string_view key, std::uint64_t value, std::uint64_t max) {
  if (value < 1 || value > max) {
    return MakeError(ErrorCode::kBadData, "deepseek2.{} is {}; allowed are 1 to {}", key, value,
                     max);
  }
  return base::Success();
}

base::Result<void> CheckAttention(const DeepseekConfig& c) {
  constexpr std::uint64_t kMaxHeadWidth = 1024;
  KV_TRY(CheckRange("attention.head_count", c.heads, 1024));
  KV_TRY(CheckRange("attention.kv_lora_rank", c.latent_dim, kernels::kMaxLatentDim));
  if (c.query_rank > 1u << 16) {
    return MakeError(ErrorCode::kBadData,
                     "deepseek2.attention.q_lora_rank is {}; allowed are 0 (none) to {}",
                     c.query_rank, 1u << 16);
  }
  KV_TRY(CheckRange("rope.dimension_count", c.rope.dimensions, kernels::kMaxLatentRopeDim));
  KV_TRY(CheckRange("attention.value_length", c.value_dim, kMaxHeadWidth));
  // Of each of the two: their sum could wrap.
  if (c.nope_dim < 1 || c.nope_dim > kMaxHeadWidth - kernels::kMaxLatentRopeDim) {
    return MakeError(ErrorCode::kBadData,
                     "deepseek2.attention.key_length leaves {} channels beside the {} of "
                     "deepseek2.rope.dimension_count; allowed are 1 to {}",
                     c.nope_dim, c.rope.dimensions, kMaxHeadWidth - kernels::kMaxLatentRopeDim);
  }
  return CheckRope("deepseek2", c.rope, c.key_dim());
}

}  // namespace

base::Result<void> CheckConfig(const DeepseekConfig& c) {
  KV_TRY(CheckRange("block_count", c.layers, 512));
  KV_TRY(CheckRange("embedding_length", c.embedding, 1u << 16));
  KV_TRY(CheckRange("feed_forward_length", c.feed_forward, 1u << 18));
  KV_TRY(CheckRange("context_length", c.context, kMaxRopePositions));
  if (c.vocab < 1 || c.vocab > 1u << 24) {
    return MakeError(ErrorCode::kBadData, "vocabulary size is {}; allowed are 1 to {}", c.vocab,
                     1u << 24);
  }
  KV_TRY(CheckAttention(c));
  if (!(c.norm_eps > 0.0f && c.norm_eps < 1.0f)) {
    return MakeError(
        ErrorCode::kBadData,
        "deepseek2.attention.layer_norm_rms_epsilon is {}; it must lie between 0 and 1",
        c.norm_eps);
  }
  return base::Success();
}

std::vector<TensorSpec> DeepseekTensors(const DeepseekConfig& c) {
  std::vector<TensorSpec> specs;
  specs.push_back({"token_embd.weight", {c.vocab, c.embedding}});
  for (std::uint64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* name, tensor::Shape shape) {
      specs.push_back({fmt::format("blk.{}.{}.weight", i, name), shape});
    };
    add("attn_norm", {c.embedding});
    if (c.query_rank == 0) {
      add("attn_q", {c.q_width(), c.embedding});
    } else {
      add("attn_q_a", {c.query_rank, c.embedding});
      add("attn_q_a_norm", {c.query_rank});
      add("attn_q_b", {c.q_width(), c.query_rank});
    }
    add("attn_kv_a_mqa", {c.entry_dim(), c.embedding});
    add("attn_kv_a_norm", {c.latent_dim});
    if (c.split_up) {
      add("attn_k_b", {c.heads, c.latent_dim, c.nope_dim});
      add("attn_v_b", {c.heads, c.value_dim, c.latent_dim});
    } else {
      add("attn_kv_b", {c.heads * (c.nope_dim + c.value_dim), c.latent_dim});
    }
    add("attn_output", {c.embedding, c.value_width()});
    add("ffn_norm", {c.embedding});
    add("ffn_gate", {c.feed_forward, c.embedding});
    add("ffn_up", {c.feed_forward, c.embedding});
    add("ffn_down", {c.embedding, c.feed_forward});
  }
  specs.push_back({"output_norm.weight", {c.embedding}});
  if (!c.tied_head) specs.push_back({"output.weight", {c.vocab, c.embedding}});
  return specs;
}

std::uint64_t ParameterCount(const DeepseekConfig& config) {
  return CountNumbers(DeepseekTensors(config));
}

}  // namespace kvasir::model
