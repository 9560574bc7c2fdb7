#include <algorithm>
#include <vector>

#include "formats/gguf_writer.h"
#include "model/model_file.h"
#include "model/model_metadata.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

void WriteWindows(const LlamaConfig& config, formats::GgufWriter& writer) {
  const auto& windows = config.windows;
  const auto largest = std::max_element(windows.begin(), windows.end());
  if (largest == windows.end() || *largest == 0) return;
  const std::string key = config.Key("attention.sliding_window");
  writer.Set(key, *largest);
  if (std::find(windows.begin(), windows.end(), 0u) == windows.end()) return;
  std::vector<bool> has_window;
  for (const std::uint64_t window : windows) has_window.push_back(window != 0);
  writer.Set(key + "_pattern", has_window);
}

}  // namespace

void SetLlamaMetadata(const LlamaConfig& config, const tokenizer::VocabularySpec& vocabulary,
                      const SaveOptions& options, formats::GgufWriter& writer) {
  writer.Set("general.architecture", ArchitectureName(config.family));
  writer.Set("general.name", std::string_view(options.name));
  const auto set = [&](const char* name, std::uint64_t value) {
    writer.Set(config.Key(name), static_cast<std::uint32_t>(value));
  };
  set("vocab_size", config.vocab);
  set("context_length", config.context);
  set("embedding_length", config.embedding);
  set("block_count", config.layers);
  set("feed_forward_length", config.feed_forward);
  set("attention.head_count", config.heads);
  set("attention.head_count_kv", config.kv_heads);
  set("attention.key_length", config.head_dim);
  set("attention.value_length", config.head_dim);
  writer.Set(config.Key("attention.layer_norm_rms_epsilon"), config.norm_eps);
  SetFileType(options.dtype, writer);
  WriteRope(ArchitectureName(config.family), config.rope, writer);
  WriteWindows(config, writer);
  WriteVocabulary(vocabulary, writer);
}

base::Result<void> SaveLlama(base::Env& env, const std::string& path, const LlamaConfig& config,
                             const tokenizer::VocabularySpec& vocabulary,
                             const TensorSource& source, const SaveOptions& options) {
  formats::GgufWriter writer;
  SetLlamaMetadata(config, vocabulary, options, writer);
  for (const TensorSpec& spec : LlamaTensors(config)) {
    KV_TRY(const std::span<const float> values, source(spec));
    const tensor::DType dtype = WrittenType(spec, options.dtype);
    writer.AddTensor(spec.name, spec.shape, dtype, tensor::ConvertFromF32(dtype, values));
  }
  return writer.Write(env, path);
}

}  // namespace kvasir::model
