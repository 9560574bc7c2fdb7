// The cache's shape in published models.
#ifndef KVASIR_KVCACHE_CACHE_PRESETS_H_
#define KVASIR_KVCACHE_CACHE_PRESETS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "kvcache/cache_plan.h"

namespace kvasir::kvcache {

struct CachePreset {
  std::string_view name;
  PlanShape shape;
  std::uint64_t context = 0;  // Tokens the model was published for.
  std::string_view source;    // Where layers, heads and widths are given.
  std::string_view note;      // Empty, or what a reader may stumble over.
};

// In the order of their publication.
std::span<const CachePreset> CachePresets();
// Null if there is none of this name.
const CachePreset* FindCachePreset(std::string_view name);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_PRESETS_H_
