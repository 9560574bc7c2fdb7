// The caches that the engine makes for a model: one pool, or a manager of many sequences.
#ifndef KVASIR_ENGINE_SEQUENCE_POOL_H_
#define KVASIR_ENGINE_SEQUENCE_POOL_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/generator_options.h"
#include "kvcache/block_pool.h"
#include "kvcache/sequence_manager.h"
#include "model/model.h"

namespace kvasir::engine {

// Where no budget is given: most bytes kept of texts that nobody writes any more.
inline constexpr std::uint64_t kDefaultIdleBytes = std::uint64_t{256} << 20;

// Its budget holds this many sequences of a full context, and for each one block more that is
// copied on writing: a bound, since blocks are taken only as texts grow. kUsage for a step of no
// sequence or no token, for block_tokens that the cache does not allow, or a budget beyond 64 bits.
base::Result<std::unique_ptr<kvcache::BlockPool>> MakeSequencePool(const model::ModelShape& shape,
                                                                   const GeneratorOptions& options,
                                                                   std::uint64_t sequences);

// For the sequences of a Generator: within kv_budget_bytes, or else within the budget above for
// twice max_batch (running sequences, and as many stems that they are forked from). Errors as
// above, and kUsage for a budget below one block.
base::Result<std::unique_ptr<kvcache::SequenceManager>> MakeSequenceManager(
    const model::ModelShape& shape, const GeneratorOptions& options);

// The model's shape with a context of as many positions as a text may have in a cache of these
// options (ModelShape::MaxPositions). kUsage as above.
base::Result<model::ModelShape> ShapeServed(const model::ModelShape& shape,
                                            const GeneratorOptions& options);

// Whether the budget, if one is given, holds a text of so many tokens alone: then it holds any
// number of such texts, one after another. Errors as above, and kUsage naming what the text takes.
base::Result<void> CheckBudget(const model::ModelShape& shape, const GeneratorOptions& options,
                               std::uint64_t tokens);
base::Result<void> CheckBudget(const kvcache::CacheGeometry& geometry,
                               const GeneratorOptions& options, std::uint64_t tokens);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SEQUENCE_POOL_H_
