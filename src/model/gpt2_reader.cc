#include "model/gpt2_reader.h"

#include "model/file_tensors.h"
#include "model/known_keys.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<Gpt2Config> ReadSettings(const formats::GgufFile& file, std::size_t vocab) {
  const formats::GgufMetadata& metadata = file.metadata();
  Gpt2Config config;
  KV_TRY(config.layers, metadata.GetUint("gpt2.block_count"));
  KV_TRY(config.heads, metadata.GetUint("gpt2.attention.head_count"));
  KV_TRY(config.embedding, metadata.GetUint("gpt2.embedding_length"));
  KV_TRY(config.context, metadata.GetUint("gpt2.context_length"));
  KV_TRY(const auto feed_forward, metadata.OptionalUint("gpt2.feed_forward_length"));
  config.feed_forward = feed_forward.value_or(4 * config.embedding);
  KV_TRY(const double eps, metadata.GetFloat("gpt2.attention.layer_norm_epsilon"));
  config.norm_eps = static_cast<float>(eps);
  KV_TRY(const auto kv_heads, metadata.OptionalUint("gpt2.attention.head_count_kv"));
  if (kv_heads && *kv_heads != config.heads) {
    return MakeError(ErrorCode::kBadData,
                     "gpt2.attention.head_count_kv is {}; gpt2 needs as many as heads, {}",
                     *kv_heads, config.heads);
  }
  config.vocab = vocab;
  config.tied_head = file.Find("output.weight") == nullptr;
  KV_TRY(CheckConfig(config));
  return config;
}

}  // namespace

base::Result<Gpt2Config> ReadGpt2Config(const formats::GgufFile& file, std::size_t vocab) {
  KV_TRY(const Gpt2Config config, ReadSettings(file, vocab));
  KV_TRY(RefuseOtherKeys(file.metadata(), "gpt2", vocab));
  KV_TRY(CheckTensors(file, Gpt2Tensors(config)));
  return config;
}

base::Result<std::unique_ptr<Gpt2Model>> ReadGpt2(const formats::GgufFile& file,
                                                  std::size_t vocab) {
  KV_TRY(const Gpt2Config config, ReadGpt2Config(file, vocab));
  return Gpt2Model::Make(config, FileSource(file));
}

}  // namespace kvasir::model
