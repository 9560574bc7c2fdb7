// Cache groups: which layers share a policy, and with it a block table per sequence.
#ifndef KVASIR_KVCACHE_CACHE_GROUP_H_
#define KVASIR_KVCACHE_CACHE_GROUP_H_

#include <cstdint>
#include <vector>

#include "kvcache/cache_geometry.h"
#include "kvcache/ids.h"

namespace kvasir::kvcache {

// A value. Blocks of a group hold its layers alone, so a group whose policy drops positions frees
// its blocks while another keeps its own. Every layer belongs to one group; with one policy for all
// layers there is one group.
struct CacheGroup {
  CacheGroupId id;
  CacheGeometry geometry;             // Of the group's layers.
  std::vector<std::uint32_t> layers;  // [geometry.layers()]: the model's number of each, ascending.

  // All layers of a model under one policy.
  static CacheGroup AllLayers(const CacheGeometry& geometry) {
    CacheGroup group = {.id = CacheGroupId(0), .geometry = geometry, .layers = {}};
    for (std::uint32_t layer = 0; layer < geometry.layers(); ++layer) group.layers.push_back(layer);
    return group;
  }
};

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_GROUP_H_
