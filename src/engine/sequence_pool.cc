#include "engine/sequence_pool.h"

#include "base/checked.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

base::Result<std::unique_ptr<kvcache::BlockPool>> MakeSequencePool(const model::ModelShape& shape,
                                                                   const GeneratorOptions& options,
                                                                   std::uint64_t sequences) {
  if (options.max_batch == 0 || options.step_tokens == 0) {
    return MakeError(ErrorCode::kUsage, "a step of {} sequences and {} tokens: both must be >= 1",
                     options.max_batch, options.step_tokens);
  }
  KV_TRY(const auto geometry, kvcache::CacheGeometry::Make(shape.Cache(options.block_tokens)));
  const auto bytes = base::CheckedProduct(
      {sequences, geometry.BlocksFor(shape.context) + 1, geometry.block_bytes()});
  if (!bytes) {
    return MakeError(ErrorCode::kUsage,
                     "a cache for {} sequences of {} tokens is larger than 2^64 bytes", sequences,
                     shape.context);
  }
  return kvcache::BlockPool::Make(
      geometry, {.budget_bytes = *bytes, .placement_seed = options.placement_seed});
}

}  // namespace kvasir::engine
