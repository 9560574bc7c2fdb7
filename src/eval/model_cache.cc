#include "eval/model_cache.h"

#include "base/checked.h"
#include "kernels/kv_type.h"

namespace kvasir::eval {

base::Result<std::unique_ptr<kvcache::BlockPool>> MakeModelCache(const model::ModelShape& shape,
                                                                 const ModelCacheOptions& options) {
  std::uint64_t block_tokens = options.block_tokens;
  if (options.policy && block_tokens % kernels::kLanes == 0) {  // Others are refused as they are.
    const std::uint64_t step = kvcache::BlockStep(*options.policy);
    block_tokens = (block_tokens + step - 1) / step * step;
  }
  KV_TRY(const auto geometry,
         kvcache::CacheGeometry::Make(shape.Cache(block_tokens, options.policy)));
  const auto bytes = base::CheckedProduct(
      {options.sequences, geometry.BlocksFor(shape.context) + 1, geometry.block_bytes()});
  if (!bytes) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "a cache for {} sequences of {} tokens is larger than 2^64 bytes",
                           options.sequences, shape.context);
  }
  return kvcache::BlockPool::Make(
      geometry, {.budget_bytes = *bytes, .placement_seed = options.placement_seed});
}

}  // namespace kvasir::eval
