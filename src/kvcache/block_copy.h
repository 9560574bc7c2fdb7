// Copying the filled part of one block to another: what copy-on-write costs.
#ifndef KVASIR_KVCACHE_BLOCK_COPY_H_
#define KVASIR_KVCACHE_BLOCK_COPY_H_

#include <cstddef>
#include <cstdint>

#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

// Copies slots [0, slots) of every layer and head. K travels in whole tiles, so up to 15 slots of
// it beyond may be overwritten too; other slots of `to`, in a latent cache all others, keep their
// bytes. Requires two different blocks of this geometry, slots <= block_tokens. Thread-compatible.
void CopySlots(const CacheGeometry& geometry, std::uint32_t slots, const std::byte* from,
               std::byte* to);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_COPY_H_
