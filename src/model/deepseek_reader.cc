#include "model/deepseek_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include "model/file_tensors.h"
#include "model/known_keys.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using formats::GgufFile;
using formats::GgufMetadata;

std::string Key(std::string_view name) { return "deepseek2." + std::string(name); }

// What the pass does not compute.
base::Result<void> RefuseOthers(const GgufMetadata& metadata, std::uint64_t layers) {
  KV_TRY(const auto dense, metadata.OptionalUint(Key("leading_dense_block_count")));
  for (const char* name : {"expert_count", "expert_shared_count"}) {
    KV_TRY(const auto experts, metadata.OptionalUint(Key(name)));
    if (experts && *experts > 0 && dense.value_or(0) < layers) {
      return MakeError(ErrorCode::kBadData,
                       "{} is {} and {} {} of {} layers; mixtures of experts are not supported",
                       Key(name), *experts, Key("leading_dense_block_count"), dense.value_or(0),
                       layers);
    }
  }
  KV_TRY(const auto predicting, metadata.OptionalUint(Key("nextn_predict_layers")));
  if (predicting && *predicting > 0) {
    return MakeError(ErrorCode::kBadData, "{} is {}; only 0 is supported",
                     Key("nextn_predict_layers"), *predicting);
  }
  KV_TRY(const auto yarn, metadata.OptionalFloat(Key("rope.scaling.yarn_log_multiplier")));
  if (yarn && *yarn != 0) {
    return MakeError(ErrorCode::kBadData, "{} is {}; yarn is not supported, only 0",
                     Key("rope.scaling.yarn_log_multiplier"), *yarn);
  }
  return base::Success();
}

// A number that must be `expected` where the file has it: what the cache holds, in the newer form.
base::Result<void> CheckEntry(const GgufMetadata& metadata, std::string_view name,
                              std::uint64_t expected) {
  KV_TRY(const auto found, metadata.OptionalUint(Key(name)));
  if (found && *found != expected) {
    return MakeError(ErrorCode::kBadData, "{} is {}; beside {}_mla it must be {}", Key(name),
                     *found, Key(name), expected);
  }
  return base::Success();
}

// Widths of heads: whole keys, rope channels among them, and values.
base::Result<void> ReadHeads(const GgufMetadata& metadata, DeepseekConfig& config) {
  const std::uint64_t rope = config.rope.dimensions;
  std::uint64_t key = 0;
  KV_TRY(const auto mla_key, metadata.OptionalUint(Key("attention.key_length_mla")));
  if (mla_key) {
    key = *mla_key;
    KV_TRY(config.value_dim, metadata.GetUint(Key("attention.value_length_mla")));
    KV_TRY(CheckEntry(metadata, "attention.key_length", config.entry_dim()));
    KV_TRY(CheckEntry(metadata, "attention.value_length", config.latent_dim));
  } else {
    KV_TRY(key, metadata.GetUint(Key("attention.key_length")));
    KV_TRY(config.value_dim, metadata.GetUint(Key("attention.value_length")));
  }
  if (key <= rope) {
    return MakeError(ErrorCode::kBadData, "{} is {}; it must exceed {}, {}",
                     Key(mla_key ? "attention.key_length_mla" : "attention.key_length"), key,
                     Key("rope.dimension_count"), rope);
  }
  config.nope_dim = key - rope;
  KV_TRY(const auto kv_heads, metadata.OptionalUint(Key("attention.head_count_kv")));
  if (kv_heads && *kv_heads != 1 && *kv_heads != config.heads) {
    return MakeError(ErrorCode::kBadData, "{} is {}; allowed are 1 and {}, {}",
                     Key("attention.head_count_kv"), *kv_heads, Key("attention.head_count"),
                     config.heads);
  }
  return base::Success();
}

base::Result<DeepseekConfig> ReadConfig(const GgufFile& file, std::size_t vocab) {
  const GgufMetadata& metadata = file.metadata();
  DeepseekConfig config;
  KV_TRY(config.layers, metadata.GetUint(Key("block_count")));
  KV_TRY(RefuseOthers(metadata, config.layers));
  KV_TRY(config.heads, metadata.GetUint(Key("attention.head_count")));
  KV_TRY(config.embedding, metadata.GetUint(Key("embedding_length")));
  KV_TRY(config.feed_forward, metadata.GetUint(Key("feed_forward_length")));
  KV_TRY(config.context, metadata.GetUint(Key("context_length")));
  config.vocab = vocab;
  KV_TRY(config.latent_dim, metadata.GetUint(Key("attention.kv_lora_rank")));
  KV_TRY(const auto query_rank, metadata.OptionalUint(Key("attention.q_lora_rank")));
  config.query_rank = query_rank.value_or(0);
  KV_TRY(config.rope.dimensions, metadata.GetUint(Key("rope.dimension_count")));
  KV_TRY(ReadHeads(metadata, config));
  KV_TRY(const double eps, metadata.GetFloat(Key("attention.layer_norm_rms_epsilon")));
  config.norm_eps = static_cast<float>(eps);
  config.tied_head = file.Find("output.weight") == nullptr;
  config.split_up = file.Find("blk.0.attn_kv_b.weight") == nullptr &&
                    file.Find("blk.0.attn_k_b.weight") != nullptr;
  KV_TRY(CheckConfig(config));
  KV_TRY(config.rope,
         ReadRope(file, "deepseek2", kernels::RopePairing::kNeighbours, config.rope.dimensions));
  KV_TRY(CheckConfig(config));
  return config;
}

}  // namespace

base::Result<std::unique_ptr<DeepseekModel>> ReadDeepseek(const GgufFile& file, std::size_t vocab) {
  KV_TRY(const DeepseekConfig config, ReadConfig(file, vocab));
  KV_TRY(RefuseOtherKeys(file.metadata(), "deepseek2", vocab));
  std::vector<TensorSpec> specs = DeepseekTensors(config);
  KV_TRY(CheckTensors(file, specs));
  KV_TRY(RefuseOtherTensors(file, specs));
  return DeepseekModel::Make(config, FileSource(file));
}

}  // namespace kvasir::model
