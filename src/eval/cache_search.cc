#include "eval/cache_search.h"

#include <algorithm>

#include "eval/cache_compare.h"
#include "eval/policy_evidence.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using kernels::KvType;
using kvcache::CachePolicy;
using kvcache::HeadPolicy;

constexpr std::size_t kAtOnce = 16;  // Policies that share one run of the full cache.
constexpr std::uint32_t kGroup = 32;

}  // namespace

std::vector<HeadPolicy> SearchedSettings(const model::ModelShape& shape) {
  std::vector<HeadPolicy> settings = {
      {},
      {.k = KvType::kF16, .v = KvType::kF16},
      {.k = KvType::kInt8, .v = KvType::kInt8},
      {.k = KvType::kInt8, .v = KvType::kInt4},
      {.k = KvType::kInt4Channel, .v = KvType::kInt8, .group = kGroup},
      {.k = KvType::kInt4Channel, .v = KvType::kInt4, .group = kGroup},
      {.k = KvType::kInt4, .v = KvType::kInt4},
  };
  for (const std::uint64_t window : {shape.context / 2, shape.context / 4}) {
    if (window == 0) continue;
    settings.push_back({.k = KvType::kInt8,
                        .v = KvType::kInt8,
                        .window = window,
                        .sinks = std::min<std::uint64_t>(4, window)});
  }
  return settings;
}

std::size_t CalibrationTokens(const model::ModelShape& shape, std::size_t tokens) {
  return std::min<std::size_t>(tokens / 2, std::max<std::uint64_t>(2048, 4 * shape.context));
}

Result<PolicySearchResult> SearchCachePolicy(const model::Model& model,
                                             std::span<const base::TokenId> calibration,
                                             std::uint64_t budget_bytes,
                                             const ArrangementOptions& arrangement,
                                             base::ThreadTeam& team) {
  const model::ModelShape& shape = model.shape();
  if (shape.latent_dim != 0) {
    return MakeError(ErrorCode::kUsage,
                     "there is nothing to search for: the model's latent attention (MLA) is always "
                     "full and f32");
  }
  PolicyWorld world;
  world.measure = [&](std::span<const CachePolicy> policies) -> Result<std::vector<double>> {
    std::vector<double> divergences;
    for (std::size_t first = 0; first < policies.size(); first += kAtOnce) {
      const auto some = policies.subspan(first, std::min(kAtOnce, policies.size() - first));
      KV_TRY(const PolicyEvidence evidence,
             EvaluatePolicies(model, calibration, some, arrangement, team));
      for (const TextEvidence& text : evidence.policies) divergences.push_back(text.kl_mean);
    }
    return divergences;
  };
  // Blocks hold whole groups of keys: one size for all settings, so that bytes of layers add up.
  const std::uint64_t block_tokens = (arrangement.block_tokens + kGroup - 1) / kGroup * kGroup;
  world.bytes = [&](const CachePolicy& policy) {
    return PolicyBytes(shape, policy, block_tokens, shape.context);
  };
  return SearchPolicy({.layers = shape.layers,
                       .kv_heads = shape.kv_heads,
                       .settings = SearchedSettings(shape),
                       .budget_bytes = budget_bytes},
                      world);
}

}  // namespace kvasir::eval
