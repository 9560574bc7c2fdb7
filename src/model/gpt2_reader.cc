#include "model/gpt2_reader.h"

#include <cmath>
#include <vector>

#include "kernels/softmax.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<Gpt2Config> ReadConfig(const formats::GgufFile& file, std::size_t vocab) {
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

// Every tensor there, of the right shape and a type we read: before anything is allocated.
base::Result<void> CheckTensors(const formats::GgufFile& file, const Gpt2Config& config) {
  for (const TensorSpec& spec : Gpt2Tensors(config)) {
    KV_TRY(const formats::GgufTensor* tensor, file.Get(spec.name));
    if (tensor->shape != spec.shape) {
      return MakeError(ErrorCode::kBadData, "tensor '{}' has shape {}; the metadata asks for {}",
                       spec.name, tensor->shape.ToString(), spec.shape.ToString());
    }
    KV_TRY(file.DTypeOf(*tensor));
  }
  return base::Success();
}

}  // namespace

base::Result<std::unique_ptr<Gpt2Model>> ReadGpt2(const formats::GgufFile& file,
                                                  std::size_t vocab) {
  KV_TRY(const Gpt2Config config, ReadConfig(file, vocab));
  KV_TRY(CheckTensors(file, config));
  std::vector<float> values;
  return Gpt2Model::Make(
      config, [&](const TensorSpec& spec) -> base::Result<std::span<const float>> {
        const formats::GgufTensor* tensor = file.Find(spec.name);
        KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
        values.resize(spec.shape.ElementCount().value());
        tensor::ConvertToF32(dtype, tensor->data, values);
        if (!kernels::AllFinite(values.data(), values.size())) {
          return MakeError(ErrorCode::kBadData, "tensor '{}' holds a number that is not finite",
                           spec.name);
        }
        return std::span<const float>(values);
      });
}

}  // namespace kvasir::model
