// A block pool of the right shape and size for a model.
#ifndef KVASIR_EVAL_MODEL_CACHE_H_
#define KVASIR_EVAL_MODEL_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "kvcache/block_pool.h"
#include "kvcache/cache_geometry.h"
#include "model/model.h"

namespace kvasir::eval {

struct ModelCacheOptions {
  // Rounded up to what the policy's groups of keys need.
  std::uint64_t block_tokens = kvcache::kDefaultBlockTokens;
  std::optional<kvcache::CachePolicy> policy = std::nullopt;  // Made for the model's Policy().
  // The budget holds this many sequences of a full context, and one block more for each, so that a
  // copy-on-write always finds room.
  std::uint64_t sequences = 1;
  std::optional<std::uint64_t> placement_seed = std::nullopt;
};

// kUsage for block_tokens that the cache does not allow, or a budget beyond 64 bits. Takes no block
// yet. Thread-safe.
base::Result<std::unique_ptr<kvcache::BlockPool>> MakeModelCache(const model::ModelShape& shape,
                                                                 const ModelCacheOptions& options);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_MODEL_CACHE_H_
