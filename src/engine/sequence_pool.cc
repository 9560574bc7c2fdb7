#include "engine/sequence_pool.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "base/checked.h"
#include "kernels/contract.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/chain_hash.h"

namespace kvasir::engine {

using base::ErrorCode;
using base::MakeError;

namespace {

base::Result<kvcache::CacheGeometry> GeometryOf(const model::ModelShape& shape,
                                                const GeneratorOptions& options) {
  if (options.max_batch == 0 || options.step_tokens == 0) {
    return MakeError(ErrorCode::kUsage, "a step of {} sequences and {} tokens: both must be >= 1",
                     options.max_batch, options.step_tokens);
  }
  return kvcache::CacheGeometry::Make(shape.Cache(options.block_tokens, options.policy));
}

base::Result<std::uint64_t> BudgetFor(const model::ModelShape& shape,
                                      const kvcache::CacheGeometry& geometry,
                                      std::uint64_t sequences) {
  const std::uint64_t positions = shape.MaxPositions(geometry);
  const std::optional<std::uint64_t> bytes = base::CheckedMul(
      sequences, geometry.PeakBytes(positions, shape.context) + geometry.block_bytes());
  if (bytes) return *bytes;
  return MakeError(ErrorCode::kUsage,
                   "a cache for {} sequences of {} tokens is larger than 2^64 bytes", sequences,
                   positions);
}

// The index belongs to one model; the names of its blocks say which.
base::Hash128 FingerprintOf(const model::ModelShape& shape, const GeneratorOptions& options) {
  const std::string configuration =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", shape.architecture, shape.layers, shape.heads,
                  shape.kv_heads, shape.head_dim, shape.embedding, shape.feed_forward,
                  shape.context, shape.vocab, shape.latent_dim, shape.rope_dim);
  return kvcache::Fingerprint(
      {.weights = options.weights,
       .configuration = configuration,
       .contract = kernels::kContractVersion,
       .cache_setting = options.policy ? options.policy->Canonical() : "full,dtype=f32"});
}

}  // namespace

base::Result<std::unique_ptr<kvcache::BlockPool>> MakeSequencePool(const model::ModelShape& shape,
                                                                   const GeneratorOptions& options,
                                                                   std::uint64_t sequences) {
  KV_TRY(const auto geometry, GeometryOf(shape, options));
  KV_TRY(const std::uint64_t bytes, BudgetFor(shape, geometry, sequences));
  return kvcache::BlockPool::Make(
      geometry, {.budget_bytes = bytes, .placement_seed = options.placement_seed});
}

base::Result<model::ModelShape> ShapeServed(const model::ModelShape& shape,
                                            const GeneratorOptions& options) {
  KV_TRY(const auto geometry, GeometryOf(shape, options));
  model::ModelShape served = shape;
  served.context = shape.MaxPositions(geometry);
  return served;
}

base::Result<void> CheckBudget(const kvcache::CacheGeometry& geometry,
                               const GeneratorOptions& options, std::uint64_t tokens) {
  if (!options.kv_budget_bytes) return base::Success();
  const std::uint64_t budget = *options.kv_budget_bytes;
  // Where a step of many tokens finds no room, it takes fewer.
  const std::uint64_t wanted = geometry.PeakBytes(tokens, 1);
  if (wanted <= budget) return base::Success();
  // The most that fits, between what does and what does not.
  std::uint64_t fits = 0;
  for (std::uint64_t over = tokens; over - fits > 1;) {
    const std::uint64_t middle = fits + (over - fits) / 2;
    (geometry.PeakBytes(middle, 1) <= budget ? fits : over) = middle;
  }
  return MakeError(ErrorCode::kUsage,
                   "the cache budget of {} bytes holds {} positions, but this text may need {}, "
                   "which take {} bytes",
                   budget, fits, tokens, wanted);
}

base::Result<void> CheckBudget(const model::ModelShape& shape, const GeneratorOptions& options,
                               std::uint64_t tokens) {
  if (!options.kv_budget_bytes) return base::Success();
  KV_TRY(const auto geometry, GeometryOf(shape, options));
  KV_TRY(kvcache::BlockPool::Make(geometry, {.budget_bytes = *options.kv_budget_bytes}));
  return CheckBudget(geometry, options, tokens);
}

base::Result<std::unique_ptr<kvcache::SequenceManager>> MakeSequenceManager(
    const model::ModelShape& shape, const GeneratorOptions& options) {
  KV_TRY(const auto geometry, GeometryOf(shape, options));
  kvcache::SequenceManagerOptions cache;
  cache.prefix_index = options.use_cache && options.share_prefixes;
  cache.index.fingerprint = FingerprintOf(shape, options);
  cache.pool.placement_seed = options.placement_seed;
  cache.store = cache.prefix_index ? options.store : nullptr;
  if (options.kv_budget_bytes) {
    cache.pool.budget_bytes = *options.kv_budget_bytes;
  } else {
    const auto sequences = base::CheckedMul(2, options.max_batch);
    if (!sequences) {
      return MakeError(ErrorCode::kUsage, "a batch of {} sequences is too large",
                       options.max_batch);
    }
    KV_TRY(cache.pool.budget_bytes, BudgetFor(shape, geometry, *sequences));
    cache.index.max_idle_bytes = kDefaultIdleBytes;
  }
  // A text without end leaves no more in the index than a few contexts of it.
  if (geometry.IsEndless()) cache.max_indexed_tokens = 4 * shape.context;
  return kvcache::SequenceManager::Make(geometry, cache);
}

}  // namespace kvasir::engine
