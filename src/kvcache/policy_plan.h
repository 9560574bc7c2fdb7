// The plan of a cache under a policy by layer and head: of what this program's cache holds, to the
// byte.
#ifndef KVASIR_KVCACHE_POLICY_PLAN_H_
#define KVASIR_KVCACHE_POLICY_PLAN_H_

#include <cstdint>

#include "base/result.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/cache_plan.h"

namespace kvasir::kvcache {

// PlanCache for the policy of `options`, which also says the block size (the workload's is not
// looked at). bytes_per_token and bytes_per_layer are what is kept of a position while it is seen,
// each layer's rounded up, without the full-precision tails of keys rounded by channel; these count
// in the total, with all blocks that are held on the way to each request's length. Errors as
// CacheGeometry::Make and PlanCache. Thread-safe.
base::Result<CachePlan> PlanPolicyCache(const CacheGeometryOptions& options,
                                        const PlanWorkload& workload);

// FitCache for the same.
base::Result<CacheFit> FitPolicyCache(const CacheGeometryOptions& options,
                                      const PlanWorkload& workload, std::uint64_t memory_bytes);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_POLICY_PLAN_H_
