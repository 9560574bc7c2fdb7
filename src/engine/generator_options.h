// GeneratorOptions: how the engine arranges its work.
#ifndef KVASIR_ENGINE_GENERATOR_OPTIONS_H_
#define KVASIR_ENGINE_GENERATOR_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "base/hash.h"
#include "kvcache/block_store.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::engine {

// How the work is arranged: never a matter of the result's bits, but for the policy, which may
// choose another function.
struct GeneratorOptions {
  // What is kept of each layer and head, made for the model's Policy(). Null: everything, in f32.
  std::optional<kvcache::CachePolicy> policy = std::nullopt;
  bool use_cache = true;  // Off: every step computes all positions again, from an empty sequence.
  std::uint64_t block_tokens = kvcache::kDefaultBlockTokens;
  std::uint64_t prefill_chunk = 0;  // Most tokens of a sequence in a step; 0: as many as fit.
  std::uint64_t max_batch = 32;     // Most sequences in a step.
  std::uint64_t step_tokens = 512;  // Most tokens in a step, which bounds its buffers.
  // Whether prompts start from what other texts have left in the cache.
  bool share_prefixes = true;
  // Most bytes of K and V, cached-and-free ones too. Null: enough for twice max_batch full
  // contexts.
  std::optional<std::uint64_t> kv_budget_bytes = std::nullopt;
  base::Hash128 weights = {};  // Names the model's weights, where blocks outlive the generator.
  // Where complete blocks go, and where prompts are looked for beyond the cache; needs `weights`.
  // Not owned; null: nowhere.
  kvcache::BlockStore* store = nullptr;
  // For tests and `verify` (block_pool.h).
  std::optional<std::uint64_t> placement_seed = std::nullopt;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_GENERATOR_OPTIONS_H_
