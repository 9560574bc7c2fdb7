#include "model/llama_config.h"

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

base::Result<void> CheckHeads(const LlamaConfig& c) {
  KV_TRY(CheckRange(c.Key("attention.head_count"), c.heads, 1024));
  KV_TRY(CheckRange(c.Key("attention.head_count_kv"), c.kv_heads, 1024));
  if (c.heads % c.kv_heads != 0) {
    return MakeError(ErrorCode::kBadData, "{} {} is not a multiple of {} {}",
                     c.Key("attention.head_count"), c.heads, c.Key("attention.head_count_kv"),
                     c.kv_heads);
  }
  if (c.head_dim < 2 || c.head_dim % 2 != 0 || c.head_dim > kernels::kMaxHeadDim) {
    return MakeError(ErrorCode::kBadData,
                     "head dimension {} ({}, or {} / {}); allowed are even numbers from 2 to {}",
                     c.head_dim, c.Key("attention.key_length"), c.Key("embedding_length"),
                     c.Key("attention.head_count"), kernels::kMaxHeadDim);
  }
  return base::Success();
}

base::Result<void> CheckWindows(const LlamaConfig& c) {
  if (c.windows.empty()) return base::Success();
  const std::string key = c.Key("attention.sliding_window");
  if (c.windows.size() != c.layers) {
    return MakeError(ErrorCode::kBadData, "{}_pattern is for {} layers; there are {}", key,
                     c.windows.size(), c.layers);
  }
  std::uint64_t window = 0;
  for (const std::uint64_t layer : c.windows) {
    if (layer == 0) continue;
    if (window != 0 && layer != window) {
      return MakeError(ErrorCode::kBadData, "{} is {} in one layer and {} in another", key, window,
                       layer);
    }
    window = layer;
    KV_TRY(CheckRange(key, window, std::uint64_t{1} << 32));
  }
  return base::Success();
}

}  // namespace

std::string_view ArchitectureName(LlamaFamily family) {
  switch (family) {
    case LlamaFamily::kLlama:
      return "llama";
    case LlamaFamily::kQwen2:
      return "qwen2";
    case LlamaFamily::kQwen3:
      return "qwen3";
  }
  return "?";
}

kernels::RopePairing PairingOf(LlamaFamily family) {
  return family == LlamaFamily::kLlama ? kernels::RopePairing::kNeighbours
                                       : kernels::RopePairing::kHalves;
}

std::string LlamaConfig::Key(std::string_view name) const {
  return fmt::format("{}.{}", ArchitectureName(family), name);
}

base::Result<void> CheckConfig(const LlamaConfig& c) {
  KV_TRY(CheckRange(c.Key("block_count"), c.layers, 512));
  KV_TRY(CheckRange(c.Key("embedding_length"), c.embedding, 1u << 16));
  KV_TRY(CheckRange(c.Key("feed_forward_length"), c.feed_forward, 1u << 18));
  KV_TRY(CheckRange(c.Key("context_length"), c.context, kMaxRopePositions));
  KV_TRY(CheckRange("vocabulary size", c.vocab, 1u << 24));
  KV_TRY(CheckHeads(c));
  if (!(c.norm_eps > 0.0f && c.norm_eps < 1.0f)) {
    return MakeError(ErrorCode::kBadData, "{} is {}; it must lie between 0 and 1",
                     c.Key("attention.layer_norm_rms_epsilon"), c.norm_eps);
  }
  KV_TRY(CheckRope(ArchitectureName(c.family), c.rope, c.head_dim));
  return CheckWindows(c);
}

std::vector<TensorSpec> LlamaTensors(const LlamaConfig& c) {
  std::vector<TensorSpec> specs;
  specs.push_back({"token_embd.weight", {c.vocab, c.embedding}});
  for (std::uint64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* name, tensor::Shape shape) {
      specs.push_back({fmt::format("blk.{}.{}", i, name), shape});
    };
    add("attn_norm.weight", {c.embedding});
    add("attn_q.weight", {c.q_width(), c.embedding});
    add("attn_k.weight", {c.kv_width(), c.embedding});
    add("attn_v.weight", {c.kv_width(), c.embedding});
    if (c.qkv_bias) {
      add("attn_q.bias", {c.q_width()});
      add("attn_k.bias", {c.kv_width()});
      add("attn_v.bias", {c.kv_width()});
    }
    if (c.head_norms) {
      add("attn_q_norm.weight", {c.head_dim});
      add("attn_k_norm.weight", {c.head_dim});
    }
    add("attn_output.weight", {c.embedding, c.q_width()});
    add("ffn_norm.weight", {c.embedding});
    add("ffn_gate.weight", {c.feed_forward, c.embedding});
    add("ffn_up.weight", {c.feed_forward, c.embedding});
    add("ffn_down.weight", {c.embedding, c.feed_forward});
  }
  specs.push_back({"output_norm.weight", {c.embedding}});
  if (!c.tied_head) specs.push_back({"output.weight", {c.vocab, c.embedding}});
  return specs;
}

std::uint64_t ParameterCount(const LlamaConfig& config) {
  return CountNumbers(LlamaTensors(config));
}

}  // namespace kvasir::model
