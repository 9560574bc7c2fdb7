// What a KV cache takes, computed without running it: any shape, one setting for all layers, any
// mix of requests; also what no code here holds. By layer and head: policy_plan.h.
#ifndef KVASIR_KVCACHE_CACHE_PLAN_H_
#define KVASIR_KVCACHE_CACHE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::kvcache {

// How a number in the cache is stored. The integers are rounded by token: each token and head (or
// latent entry) has a scale of 2 bytes, with int4 also a minimum of 2 bytes.
enum class PlanDType : std::uint8_t { kF32, kF16, kBF16, kInt8, kInt4 };
inline constexpr PlanDType kPlanDTypes[] = {PlanDType::kF32, PlanDType::kF16, PlanDType::kBF16,
                                            PlanDType::kInt8, PlanDType::kInt4};
std::string_view PlanDTypeName(PlanDType dtype);
std::optional<PlanDType> FindPlanDType(std::string_view name);

// The plan lists every layer, so their number has a limit; the other numbers are only limited by
// 2^64 bytes in all.
inline constexpr std::uint64_t kMaxPlanLayers = 65536;

// Keys and values of kv_heads heads, or where latent_dim is set the one entry of multi-head latent
// attention (DeepSeek-V2, arXiv 2405.04434).
struct PlanShape {
  std::uint64_t layers = 0;    // 1 … kMaxPlanLayers
  std::uint64_t kv_heads = 0;  // >= 1; 0 in a latent cache
  std::uint64_t head_dim = 0;  // >= 1; 0 in a latent cache
  std::uint64_t latent_dim = 0;
  std::uint64_t rope_dim = 0;   // beside latent_dim
  std::uint64_t embedding = 0;  // The model's width; needed for PlanPolicy::hidden only.
};

// One setting for all layers. The defaults are what the running cache does.
struct PlanPolicy {
  PlanDType dtype = PlanDType::kF32;
  std::optional<PlanDType> value_dtype = std::nullopt;  // Of V, where it is not that of K.
  // 0, or for int4 keys rounded by channel over so many positions: a multiple of 16. The positions
  // of the group that is not complete stay in f32, in room for a whole group a sequence.
  std::uint64_t key_group = 0;
  std::uint64_t window = 0;  // A query sees so many last positions, its own included; 0: all.
  std::uint64_t sinks = 0;   // And so many first ones. Needs a window.
  bool hidden = false;       // The layer's input, f32 [embedding], instead of K and V.
};

struct PlanRequests {
  std::uint64_t count = 0;   // >= 1
  std::uint64_t tokens = 0;  // >= 1: positions cached of each
  friend bool operator==(const PlanRequests&, const PlanRequests&) = default;
};

// Sequences held at the same time.
struct PlanWorkload {
  std::vector<PlanRequests> requests;  // At least one.
  // First tokens that all of them have in common; at most the shortest one's. Their complete blocks
  // are held once.
  std::uint64_t shared_prefix = 0;
  std::uint64_t block_tokens = kDefaultBlockTokens;  // As CacheGeometry allows.
};

// Bytes are of all layers together. With a window, what is held depends on where it lies in its
// blocks: the plan takes the most that is held on the way to each request's length.
struct CachePlan {
  bool runs = false;  // Whether this program's cache holds it, to the byte; else by formula.
  std::uint64_t bytes_per_token = 0;           // With key_group: the mean, rounded up.
  std::vector<std::uint64_t> bytes_per_layer;  // [layers]: of one token; adds up to the above
  std::uint64_t block_bytes = 0;
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;  // Of all sequences together, shared ones counted in each.
  std::uint64_t blocks = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_without_sharing = 0;
  std::uint64_t bytes_empty = 0;  // Part of the total: slots of blocks that no query can see.
  // What attention reads in the step that decides the next token of every sequence.
  std::uint64_t bytes_read_per_step = 0;
  std::string formula;  // How bytes_per_token comes about, in words and numbers.
};

// kUsage naming the setting with its value, or all factors of a product beyond 64 bits. Allocates
// nothing that grows with a setting but layers. Thread-safe.
base::Result<CachePlan> PlanCache(const PlanShape& shape, const PlanPolicy& policy,
                                  const PlanWorkload& workload);

struct CacheFit {
  // How many times the whole list of requests fits, the prefix held once for all.
  std::uint64_t times = 0;
  // If all requests have one length: the most tokens each that fit, all of them at once; 0 if none.
  // kEndless: any number, as a window allows.
  std::optional<std::uint64_t> longest;
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};
};

// What fits into so many bytes of cache. Errors as PlanCache.
base::Result<CacheFit> FitCache(const PlanShape& shape, const PlanPolicy& policy,
                                const PlanWorkload& workload, std::uint64_t memory_bytes);

}  // namespace kvasir::kvcache

#endif  // KVASIR_KVCACHE_CACHE_PLAN_H_
