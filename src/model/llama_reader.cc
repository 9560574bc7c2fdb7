#include "model/llama_reader.h"

#include <string>
#include <vector>

#include "model/file_tensors.h"
#include "model/known_keys.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using formats::GgufFile;
using formats::GgufMetadata;

base::Result<void> ReadHeads(const GgufMetadata& metadata, LlamaConfig& config) {
  KV_TRY(config.heads, metadata.GetUint(config.Key("attention.head_count")));
  KV_TRY(const auto kv_heads, metadata.OptionalUint(config.Key("attention.head_count_kv")));
  config.kv_heads = kv_heads.value_or(config.heads);
  KV_TRY(const auto key_length, metadata.OptionalUint(config.Key("attention.key_length")));
  if (key_length) {
    config.head_dim = *key_length;
  } else if (config.heads == 0 || config.embedding % config.heads != 0) {
    return MakeError(ErrorCode::kBadData, "{} {} is not a multiple of {} {}",
                     config.Key("embedding_length"), config.embedding,
                     config.Key("attention.head_count"), config.heads);
  } else {
    config.head_dim = config.embedding / config.heads;
  }
  KV_TRY(const auto value_length, metadata.OptionalUint(config.Key("attention.value_length")));
  if (value_length && *value_length != config.head_dim) {
    return MakeError(ErrorCode::kBadData, "{} is {}; it must be that of keys, {}",
                     config.Key("attention.value_length"), *value_length, config.head_dim);
  }
  return base::Success();
}

}  // namespace

base::Result<std::vector<std::uint64_t>> ReadWindows(const GgufMetadata& metadata,
                                                     const std::string& key, std::size_t layers) {
  std::vector<std::uint64_t> windows;
  const std::string pattern_key = key + "_pattern";
  const formats::GgufValue* pattern = metadata.Find(pattern_key);
  KV_TRY(const auto window, metadata.OptionalUint(key));
  if (!window && pattern != nullptr) {
    return MakeError(ErrorCode::kBadData, "{} is missing, which {} needs", key, pattern_key);
  }
  if (!window) return windows;
  if (*window == 0) return MakeError(ErrorCode::kBadData, "{} is 0; at least 1 is allowed", key);
  windows.assign(layers, *window);
  if (pattern == nullptr) return windows;
  if (pattern->is_array()) {
    const auto has_window = pattern->AsBoolArray();
    if (!has_window || has_window->size() != layers) {
      return MakeError(ErrorCode::kBadData, "{} is {}; allowed are a number or {} bools",
                       pattern_key, pattern->TypeText(), layers);
    }
    for (std::size_t i = 0; i < layers; ++i) {
      if (!(*has_window)[i]) windows[i] = 0;
    }
    return windows;
  }
  KV_TRY(const auto period, metadata.GetUint(pattern_key));
  if (period == 0) {
    return MakeError(ErrorCode::kBadData, "{} is 0; at least 1 is allowed", pattern_key);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    if (i % period == period - 1) windows[i] = 0;
  }
  return windows;
}

namespace {

base::Result<void> RefuseExperts(const GgufMetadata& metadata, const LlamaConfig& config) {
  KV_TRY(const auto experts, metadata.OptionalUint(config.Key("expert_count")));
  if (experts && *experts > 0) {
    return MakeError(ErrorCode::kBadData, "{} is {}; mixtures of experts are not supported",
                     config.Key("expert_count"), *experts);
  }
  return base::Success();
}

base::Result<LlamaConfig> ReadSettings(const GgufFile& file, LlamaFamily family,
                                       std::size_t vocab) {
  const GgufMetadata& metadata = file.metadata();
  LlamaConfig config;
  config.family = family;
  KV_TRY(RefuseExperts(metadata, config));
  KV_TRY(config.layers, metadata.GetUint(config.Key("block_count")));
  KV_TRY(config.embedding, metadata.GetUint(config.Key("embedding_length")));
  KV_TRY(config.feed_forward, metadata.GetUint(config.Key("feed_forward_length")));
  KV_TRY(config.context, metadata.GetUint(config.Key("context_length")));
  config.vocab = vocab;
  KV_TRY(ReadHeads(metadata, config));
  KV_TRY(const double eps, metadata.GetFloat(config.Key("attention.layer_norm_rms_epsilon")));
  config.norm_eps = static_cast<float>(eps);
  config.tied_head = file.Find("output.weight") == nullptr;
  config.qkv_bias = family == LlamaFamily::kQwen2 || file.Find("blk.0.attn_q.bias") != nullptr;
  config.head_norms = family == LlamaFamily::kQwen3;
  // Before the rest, which takes memory by heads and layers.
  config.rope.dimensions = config.head_dim;
  KV_TRY(CheckConfig(config));
  KV_TRY(config.rope, ReadRope(file, ArchitectureName(family), PairingOf(family), config.head_dim));
  KV_TRY(config.windows,
         ReadWindows(metadata, config.Key("attention.sliding_window"), config.layers));
  KV_TRY(CheckConfig(config));
  return config;
}

}  // namespace

base::Result<LlamaConfig> ReadLlamaConfig(const GgufFile& file, LlamaFamily family,
                                          std::size_t vocab) {
  KV_TRY(const LlamaConfig config, ReadSettings(file, family, vocab));
  KV_TRY(RefuseOtherKeys(file.metadata(), ArchitectureName(family), vocab));
  const std::vector<TensorSpec> specs = LlamaTensors(config);
  KV_TRY(CheckTensors(file, specs));
  KV_TRY(RefuseOtherTensors(file, specs));
  return config;
}

base::Result<std::unique_ptr<LlamaModel>> ReadLlama(const GgufFile& file, LlamaFamily family,
                                                    std::size_t vocab) {
  KV_TRY(const LlamaConfig config, ReadLlamaConfig(file, family, vocab));
  return LlamaModel::Make(config, FileSource(file));
}

}  // namespace kvasir::model
