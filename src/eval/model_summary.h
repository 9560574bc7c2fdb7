// What a GGUF file says of the model in it, whether or not it is one that Kvasir runs.
#ifndef KVASIR_EVAL_MODEL_SUMMARY_H_
#define KVASIR_EVAL_MODEL_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/gguf_reader.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::eval {

// From the metadata keys that all language models in GGUF share ("gpt2.block_count", …). A field
// the file does not have, or has in another type, is absent.
struct ModelSummary {
  std::optional<std::string> architecture;
  std::optional<std::uint64_t> layers;
  std::optional<std::uint64_t> heads;
  std::optional<std::uint64_t> kv_heads;  // Those of heads where the file has no key of its own.
  std::optional<std::uint64_t> embedding;
  std::optional<std::uint64_t> context;
  std::optional<std::uint64_t> vocab;
  std::vector<std::uint64_t> windows;  // [layers]: sliding windows, 0: none; empty: none at all
  std::uint64_t parameters = 0;  // Elements of all tensors; one matrix used twice counts once.
  // The cache the file's keys ask for, whether or not its sizes are allowed; absent if keys lack.
  std::optional<kvcache::CacheGeometryOptions> cache;
  // What it holds of one token in f32, over all layers; absent if the sizes are not allowed.
  std::optional<std::uint64_t> cache_bytes_per_token;
};

// Never fails: whatever stands in the file is described as far as it goes. Thread-safe.
ModelSummary Summarize(const formats::GgufFile& file);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_MODEL_SUMMARY_H_
