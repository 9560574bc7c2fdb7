// /kvasir/cache: the blocks that a tenant's texts hold now.
#ifndef KVASIR_SERVER_CACHE_PAGE_H_
#define KVASIR_SERVER_CACHE_PAGE_H_

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "server/api_error.h"

namespace kvasir::server {

// cache_salt of a body that may be empty: whose blocks are asked for. ApiError 400.
ApiResult<std::string> ReadCacheCall(std::string_view body);

struct CacheFacts {
  std::uint64_t block_tokens = 0;
  std::uint64_t block_bytes = 0;
  std::string_view policy;  // Element type and what is kept: "full,dtype=f32".
};

// Only sequences of this salt are told of, and of blocks only how many tables hold them.
std::string CacheJson(const engine::EngineSnapshot& snapshot, const CacheFacts& facts,
                      std::string_view salt);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_CACHE_PAGE_H_
