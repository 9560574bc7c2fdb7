#include <algorithm>

#include "kernels/scalar_math.h"
#include "model/model.h"

namespace kvasir::model {
namespace {

// A block holds whole groups of keys rounded by channel. Groups are powers of two, so a multiple of
// the largest serves all of them, and none is longer than the longest block. What is no block size
// stays as it is, to be refused.
std::uint64_t WholeGroups(std::uint64_t block_tokens, const kvcache::CachePolicy& policy) {
  if (block_tokens == 0 || block_tokens % kvcache::kDefaultBlockTokens != 0 ||
      block_tokens > kvcache::kMaxBlockTokens) {
    return block_tokens;
  }
  std::uint64_t largest = 1;
  for (std::uint64_t layer = 0; layer < policy.layers(); ++layer) {
    for (const kvcache::HeadPolicy& head : policy.Layer(layer)) {
      largest = std::max<std::uint64_t>(largest, head.group);
    }
  }
  return (block_tokens + largest - 1) / largest * largest;
}

}  // namespace

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
  if (options.policy) options.block_tokens = WholeGroups(block_tokens, *options.policy);
  return options;
}

std::uint64_t ModelShape::MaxPositions(const kvcache::CacheGeometry& geometry) const {
  // Positions stay exact in f64, and angles within what the turn allows (RopeTurn).
  constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 31;
  static_assert(static_cast<double>(kMostPositions) <= kernels::kMaxAngle);
  return rotary && geometry.IsEndless() ? kMostPositions : context;
}

}  // namespace kvasir::model
