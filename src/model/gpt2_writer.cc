#include <vector>

#include "formats/gguf_writer.h"
#include "model/model_file.h"
#include "model/model_metadata.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {

void SetGpt2Metadata(const Gpt2Config& config, const tokenizer::VocabularySpec& vocabulary,
                     const SaveOptions& options, formats::GgufWriter& writer) {
  writer.Set("general.architecture", "gpt2");
  writer.Set("general.name", std::string_view(options.name));
  const auto set = [&](const char* key, std::uint64_t value) {
    writer.Set(key, static_cast<std::uint32_t>(value));
  };
  set("gpt2.context_length", config.context);
  set("gpt2.embedding_length", config.embedding);
  set("gpt2.block_count", config.layers);
  set("gpt2.feed_forward_length", config.feed_forward);
  set("gpt2.attention.head_count", config.heads);
  writer.Set("gpt2.attention.layer_norm_epsilon", config.norm_eps);
  SetFileType(options.dtype, writer);
  WriteVocabulary(vocabulary, writer);
}

base::Result<void> SaveGpt2(base::Env& env, const std::string& path, const Gpt2Config& config,
                            const tokenizer::VocabularySpec& vocabulary, const TensorSource& source,
                            const SaveOptions& options) {
  formats::GgufWriter writer;
  SetGpt2Metadata(config, vocabulary, options, writer);
  for (const TensorSpec& spec : Gpt2Tensors(config)) {
    KV_TRY(const std::span<const float> values, source(spec));
    const tensor::DType dtype = WrittenType(spec, options.dtype);
    writer.AddTensor(spec.name, spec.shape, dtype, tensor::ConvertFromF32(dtype, values));
  }
  return writer.Write(env, path);
}

}  // namespace kvasir::model
