// /kvasir/cache: the blocks that a tenant's texts hold now, and those kept for texts to come.
#ifndef KVASIR_SERVER_CACHE_PAGE_H_
#define KVASIR_SERVER_CACHE_PAGE_H_

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "kvcache/cache_geometry.h"
#include "server/api_error.h"

namespace kvasir::server {

// cache_salt of a body that may be empty: whose blocks are asked for. ApiError 400.
ApiResult<std::string> ReadCacheCall(std::string_view body);

// Most kept blocks that are listed; their number and bytes count all.
inline constexpr std::size_t kMaxKeptShown = 4096;

// What a block of this group holds: "f32", "k=int8,v=f16", "hidden f32", several joined by "+".
std::string BlockDtype(const kvcache::CacheGeometry& geometry, std::size_t group);

// policy: element types and what is kept, "full,dtype=f32". Only sequences of this salt are told
// of, and of blocks only how many tables hold them; the snapshot's kept blocks are this salt's.
std::string CacheJson(const engine::EngineSnapshot& snapshot,
                      const kvcache::CacheGeometry& geometry, std::string_view policy,
                      std::string_view salt);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_CACHE_PAGE_H_
