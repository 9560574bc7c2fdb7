// A block pool for sequences of a model.
#ifndef KVASIR_ENGINE_SEQUENCE_POOL_H_
#define KVASIR_ENGINE_SEQUENCE_POOL_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/generator.h"
#include "kvcache/block_pool.h"
#include "model/model.h"

namespace kvasir::engine {

// Its budget holds this many sequences of a full context, and for each one block more that is
// copied on writing: a bound, since blocks are taken only as texts grow. kUsage for a step of no
// sequence or no token, for block_tokens that the cache does not allow, or a budget beyond 64 bits.
base::Result<std::unique_ptr<kvcache::BlockPool>> MakeSequencePool(const model::ModelShape& shape,
                                                                   const GeneratorOptions& options,
                                                                   std::uint64_t sequences);

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SEQUENCE_POOL_H_
