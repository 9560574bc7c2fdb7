#include "eval/model_summary.h"

#include "kvcache/cache_geometry.h"
#include "model/llama_reader.h"

namespace kvasir::eval {
namespace {

std::optional<std::uint64_t> FindUint(const formats::GgufFile& file, const std::string& key) {
  const formats::GgufValue* value = file.metadata().Find(key);
  return value == nullptr ? std::nullopt : value->AsUint();
}

std::optional<kvcache::CacheGeometryOptions> CacheOf(const ModelSummary& summary,
                                                     std::optional<std::uint64_t> head_dim) {
  if (!summary.layers || !summary.kv_heads || !summary.heads || !summary.embedding) return {};
  if (!head_dim) {
    if (*summary.heads == 0 || *summary.embedding % *summary.heads != 0) return {};
    head_dim = *summary.embedding / *summary.heads;
  }
  return kvcache::CacheGeometryOptions{
      .layers = *summary.layers, .kv_heads = *summary.kv_heads, .head_dim = *head_dim};
}

}  // namespace

ModelSummary Summarize(const formats::GgufFile& file) {
  ModelSummary summary;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    // No overflow: every element takes bytes of the file, if only some bits.
    summary.parameters += tensor.shape.ElementCount().value_or(0);
  }
  const formats::GgufValue* architecture = file.metadata().Find("general.architecture");
  const auto name = architecture == nullptr ? std::nullopt : architecture->AsString();
  if (!name) return summary;
  summary.architecture = std::string(*name);
  const std::string prefix = *summary.architecture + ".";
  summary.layers = FindUint(file, prefix + "block_count");
  summary.heads = FindUint(file, prefix + "attention.head_count");
  summary.kv_heads = FindUint(file, prefix + "attention.head_count_kv");
  if (!file.metadata().Has(prefix + "attention.head_count_kv")) summary.kv_heads = summary.heads;
  summary.embedding = FindUint(file, prefix + "embedding_length");
  summary.context = FindUint(file, prefix + "context_length");
  summary.vocab = FindUint(file, prefix + "vocab_size");
  const formats::GgufValue* tokens = file.metadata().Find("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->is_array()) summary.vocab = tokens->count;
  // Multi-head latent attention keeps a latent and a rotated key for all heads together.
  const auto latent_dim = FindUint(file, prefix + "attention.kv_lora_rank");
  const auto rope_dim = FindUint(file, prefix + "rope.dimension_count");
  if (!latent_dim) {
    summary.cache = CacheOf(summary, FindUint(file, prefix + "attention.key_length"));
  } else if (summary.layers && rope_dim) {
    summary.cache = kvcache::CacheGeometryOptions{
        .layers = *summary.layers, .latent_dim = *latent_dim, .rope_dim = *rope_dim};
  }
  if (summary.cache && !latent_dim && summary.cache->layers <= kvcache::kMaxLayers) {
    const auto windows = model::ReadWindows(file.metadata(), prefix + "attention.sliding_window",
                                            summary.cache->layers);
    if (windows) summary.windows = windows.value();
  }
  if (summary.cache) {
    const auto geometry = kvcache::CacheGeometry::Make(*summary.cache);
    if (geometry) summary.cache_bytes_per_token = geometry.value().bytes_per_token();
  }
  return summary;
}

}  // namespace kvasir::eval
