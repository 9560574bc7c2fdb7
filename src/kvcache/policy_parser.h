// Reads the --kv language (cache_policy.h).
#ifndef KVASIR_KVCACHE_POLICY_PARSER_H_
#define KVASIR_KVCACHE_POLICY_PARSER_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kvcache/cache_policy.h"

namespace kvasir::kvcache {

// More than any policy of a real model needs.
inline constexpr std::size_t kMaxPolicyChars = std::size_t{1} << 20;

// CachePolicy::Parse, as policies of heads: [layers][max(1, kv_heads)].
base::Result<std::vector<HeadPolicy>> ParseHeadPolicies(std::string_view spec,
                                                        const PolicyShape& shape);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_POLICY_PARSER_H_
