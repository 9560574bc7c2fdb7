#include "cli/train_shape.h"

#include <string_view>
#include <utility>
#include <vector>

#include "cli/number_flags.h"
#include "kernels/attention.h"
#include "kvcache/cache_policy.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// SwiGLU has a third matrix: two thirds of GELU's width, rounded up to 32, make as many parameters.
std::uint64_t DefaultFfn(const TrainShape& shape) {
  return shape.arch == "gpt2" ? 4 * shape.dim : (shape.dim * 8 / 3 + 31) / 32 * 32;
}

base::Result<void> CheckHeads(const TrainShape& shape) {
  if (shape.dim % shape.heads != 0) {
    return MakeError(ErrorCode::kUsage, "--dim {} is not a multiple of --heads {}", shape.dim,
                     shape.heads);
  }
  const std::uint64_t head_dim = shape.dim / shape.heads;
  if (head_dim > kernels::kMaxHeadDim) {
    return MakeError(ErrorCode::kUsage,
                     "--dim {} with --heads {} makes {} channels a head; allowed are 1 to {}",
                     shape.dim, shape.heads, head_dim, kernels::kMaxHeadDim);
  }
  return base::Success();
}

// What GPT-2 has no use for.
base::Result<void> CheckGpt2(const TrainShape& shape) {
  if (shape.kv_heads && *shape.kv_heads != shape.heads) {
    return MakeError(ErrorCode::kUsage,
                     "--kv-heads {} with --arch gpt2 is not allowed: it has as many as --heads {}",
                     *shape.kv_heads, shape.heads);
  }
  if (shape.rope_base != 0) {
    return MakeError(ErrorCode::kUsage,
                     "--rope-base {} with --arch gpt2 is not allowed: its positions are learned",
                     shape.rope_base);
  }
  if (!shape.window.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "--window {} with --arch gpt2 is not allowed: its files cannot hold one",
                     shape.window);
  }
  return base::Success();
}

// [layers] from "N" or "N,PATTERN": a letter of the pattern a layer, from the start again where it
// ends.
base::Result<std::vector<std::uint64_t>> ParseWindow(std::string_view text, std::uint64_t layers) {
  const std::size_t comma = text.find(',');
  const std::string_view pattern = comma == text.npos ? "w" : text.substr(comma + 1);
  KV_TRY(const std::uint64_t window,
         ParseUint("--window", text.substr(0, comma), {1, kvcache::kMaxWindow}));
  if (pattern.empty() || pattern.find_first_not_of("wf") != pattern.npos) {
    return MakeError(ErrorCode::kUsage,
                     "--window {}: '{}' is not a pattern; allowed are the letters w (a layer with "
                     "the window) and f (a full one), one a layer, repeated",
                     text, pattern);
  }
  std::vector<std::uint64_t> windows(layers);
  for (std::uint64_t i = 0; i < layers; ++i) {
    windows[i] = pattern[i % pattern.size()] == 'w' ? window : 0;
  }
  return windows;
}

model::Gpt2Config Gpt2Of(const TrainShape& shape, std::uint64_t vocab) {
  return {.layers = shape.layers,
          .heads = shape.heads,
          .embedding = shape.dim,
          .feed_forward = shape.ffn.value_or(DefaultFfn(shape)),
          .context = shape.context,
          .vocab = vocab,
          .tied_head = shape.tied};
}

base::Result<model::LlamaConfig> LlamaOf(const TrainShape& shape, std::uint64_t vocab) {
  model::LlamaConfig config;
  config.layers = shape.layers;
  config.heads = shape.heads;
  config.kv_heads = shape.kv_heads.value_or(shape.heads);
  config.head_dim = config.rope.dimensions = shape.dim / shape.heads;
  config.embedding = shape.dim;
  config.feed_forward = shape.ffn.value_or(DefaultFfn(shape));
  config.context = shape.context;
  config.vocab = vocab;
  config.tied_head = shape.tied;
  if (shape.rope_base != 0) config.rope.base = static_cast<float>(shape.rope_base);
  if (!shape.window.empty()) {
    KV_TRY(config.windows, ParseWindow(shape.window, shape.layers));
  }
  if (config.heads % config.kv_heads != 0) {
    return MakeError(ErrorCode::kUsage, "--heads {} is not a multiple of --kv-heads {}",
                     config.heads, config.kv_heads);
  }
  if (config.head_dim % 2 != 0) {
    return MakeError(ErrorCode::kUsage,
                     "--dim {} with --heads {} makes {} channels a head; --arch llama turns pairs "
                     "of them, so it must be even",
                     shape.dim, shape.heads, config.head_dim);
  }
  return config;
}

}  // namespace

void AddShapeFlags(CLI::App* command, TrainShape& shape) {
  command
      ->add_option("--arch", shape.arch,
                   "Architecture: gpt2, or llama (RMSNorm, RoPE, SwiGLU, no biases) (gpt2)")
      ->check(CLI::IsMember({"gpt2", "llama"}));
  AddUint(command, "--layers", shape.layers, {1, 512}, "Layers (4)");
  AddUint(command, "--heads", shape.heads, {1, 1024}, "Attention heads (4)");
  AddUint(command, "--kv-heads", shape.kv_heads, {1, 1024},
          "llama: heads of keys and values, each shared by as many queries' heads (--heads)");
  AddUint(command, "--dim", shape.dim, {1, 1u << 16}, "Channels (128)");
  AddUint(command, "--ffn", shape.ffn, {1, 1u << 18},
          "MLP channels (gpt2: 4 x dim; llama: 8/3 x dim, rounded up to 32)");
  AddUint(command, "--context", shape.context, {1, 1u << 20}, "Context in tokens (128)");
  AddFloat(command, "--rope-base", shape.rope_base, {1, 1e9},
           "llama: base of the rotary positions (10000)");
  command->add_option("--window", shape.window,
                      "llama: N[,PATTERN]: a query sees the last N positions in layers that "
                      "PATTERN gives a w, all in those with an f: 64,wwf (w)");
  command->add_flag("--tied", shape.tied, "Share the output matrix with the embedding");
}

base::Result<training::ModelConfig> MakeModelConfig(const TrainShape& shape, std::uint64_t vocab) {
  KV_TRY(CheckHeads(shape));
  if (shape.arch == "gpt2") {
    KV_TRY(CheckGpt2(shape));
    return training::ModelConfig(Gpt2Of(shape, vocab));
  }
  KV_TRY(model::LlamaConfig llama, LlamaOf(shape, vocab));
  return training::ModelConfig(std::move(llama));
}

}  // namespace kvasir::cli
