#include "kernels/scalar_math.h"
#include "model/model.h"

namespace kvasir::model {

kvcache::CacheGeometryOptions ModelShape::Cache(
    std::uint64_t block_tokens, const std::optional<kvcache::CachePolicy>& policy) const {
  kvcache::CacheGeometryOptions options = {.layers = layers,
                                           .kv_heads = kv_heads,
                                           .head_dim = head_dim,
                                           .block_tokens = block_tokens,
                                           .latent_dim = latent_dim,
                                           .rope_dim = rope_dim,
                                           .hidden_dim = embedding,
                                           .policy = policy};
  if (!windows.empty()) {
    if (!options.policy) options.policy = kvcache::CachePolicy::Full(layers, kv_heads);
    options.policy->LimitWindows(windows);
  }
  return options;
}

std::uint64_t ModelShape::MaxPositions(const kvcache::CacheGeometry& geometry) const {
  // Positions stay exact in f64, and angles within what the turn allows (RopeTurn).
  constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 31;
  static_assert(static_cast<double>(kMostPositions) <= kernels::kMaxAngle);
  return rotary && geometry.IsEndless() ? kMostPositions : context;
}

}  // namespace kvasir::model
