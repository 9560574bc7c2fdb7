// The name of what lies where in a cache's blocks.
#ifndef KVASIR_KVCACHE_LAYOUT_NAME_H_
#define KVASIR_KVCACHE_LAYOUT_NAME_H_

#include "base/hash.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

// Equal exactly where blocks of the same group hold the same numbers at the same bytes: it covers
// the shape, every part with its policy and offsets, every group's retention and block size, and a
// version that is raised when their meaning changes.
base::Hash128 LayoutName(const CacheGeometry& geometry);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_LAYOUT_NAME_H_
