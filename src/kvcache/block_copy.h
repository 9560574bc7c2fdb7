// Copying the filled part of one block to another: what copy-on-write costs.
#ifndef KVASIR_KVCACHE_BLOCK_COPY_H_
#define KVASIR_KVCACHE_BLOCK_COPY_H_

#include <cstddef>
#include <cstdint>

#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

// Copies slots [0, slots) of every part of the group. Tiles travel whole, so up to 15 slots of keys
// (of rounded values too) beyond may be overwritten as well; scales of keys rounded by channel
// travel with the complete groups of positions; all other slots of `to` keep their bytes. Requires
// two different blocks of this group, slots <= block_tokens. Thread-compatible.
void CopySlots(const CacheGeometry& geometry, CacheGroupId group, std::uint32_t slots,
               const std::byte* from, std::byte* to);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_BLOCK_COPY_H_
