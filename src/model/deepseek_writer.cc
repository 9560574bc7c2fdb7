#include <string>

#include "formats/gguf_writer.h"
#include "model/model_file.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {

base::Result<void> SaveDeepseek(base::Env& env, const std::string& path, const DeepseekConfig& c,
                                const tokenizer::VocabularySpec& vocabulary,
                                const TensorSource& source, const SaveOptions& options) {
  formats::GgufWriter writer;
  writer.Set("general.architecture", "deepseek2");
  writer.Set("general.name", std::string_view(options.name));
  const auto set = [&](const char* name, std::uint64_t value) {
    writer.Set("deepseek2." + std::string(name), static_cast<std::uint32_t>(value));
  };
  set("vocab_size", c.vocab);
  set("context_length", c.context);
  set("embedding_length", c.embedding);
  set("block_count", c.layers);
  set("leading_dense_block_count", c.layers);
  set("feed_forward_length", c.feed_forward);
  set("attention.head_count", c.heads);
  set("attention.head_count_kv", 1);  // All heads share the cached entry.
  if (c.query_rank != 0) set("attention.q_lora_rank", c.query_rank);
  set("attention.kv_lora_rank", c.latent_dim);
  set("attention.key_length", c.entry_dim());
  set("attention.value_length", c.latent_dim);
  set("attention.key_length_mla", c.key_dim());
  set("attention.value_length_mla", c.value_dim);
  writer.Set("deepseek2.attention.layer_norm_rms_epsilon", c.norm_eps);
  SetFileType(options.dtype, writer);
  WriteRope("deepseek2", c.rope, writer);
  WriteVocabulary(vocabulary, writer);
  for (const TensorSpec& spec : DeepseekTensors(c)) {
    KV_TRY(const std::span<const float> values, source(spec));
    const tensor::DType dtype = WrittenType(spec, options.dtype);
    writer.AddTensor(spec.name, spec.shape, dtype, tensor::ConvertFromF32(dtype, values));
  }
  return writer.Write(env, path);
}

}  // namespace kvasir::model
