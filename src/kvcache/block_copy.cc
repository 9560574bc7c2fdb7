#include "kvcache/block_copy.h"

#include <cstring>

#include "base/check.h"
#include "kernels/kv_view.h"

namespace kvasir::kvcache {
namespace {

void CopyKeysAndValues(const CacheGeometry& geometry, std::uint32_t slots, const std::byte* from,
                       std::byte* to) {
  // One head's part of K and its part of V have the same size: [block_tokens, head_dim] in f32.
  const std::uint64_t row_bytes = geometry.head_dim() * sizeof(float);
  const std::uint64_t head_bytes = geometry.block_tokens() * row_bytes;
  const std::uint64_t tiles = (slots + kernels::kLanes - 1) / kernels::kLanes;
  const std::uint64_t k_bytes = tiles * kernels::kLanes * row_bytes;
  const std::uint64_t v_bytes = slots * row_bytes;
  for (std::uint32_t layer = 0; layer < geometry.layers(); ++layer) {
    for (std::uint32_t head = 0; head < geometry.kv_heads(); ++head) {
      const std::uint64_t k = geometry.k_offset(layer) + head * head_bytes;
      const std::uint64_t v = geometry.v_offset(layer) + head * head_bytes;
      std::memcpy(to + k, from + k, k_bytes);
      std::memcpy(to + v, from + v, v_bytes);
    }
  }
}

// A layer's rows lie one after the other, [block_tokens, latent_dim + rope_dim] in f32.
void CopyLatents(const CacheGeometry& geometry, std::uint32_t slots, const std::byte* from,
                 std::byte* to) {
  const std::uint64_t bytes = slots * geometry.layer_bytes_per_token();
  for (std::uint32_t layer = 0; layer < geometry.layers(); ++layer) {
    const std::uint64_t offset = geometry.latent_offset(layer);
    std::memcpy(to + offset, from + offset, bytes);
  }
}

}  // namespace

void CopySlots(const CacheGeometry& geometry, std::uint32_t slots, const std::byte* from,
               std::byte* to) {
  KV_CHECK(slots <= geometry.block_tokens());
  if (geometry.is_latent()) {
    CopyLatents(geometry, slots, from, to);
  } else {
    CopyKeysAndValues(geometry, slots, from, to);
  }
}

}  // namespace kvasir::kvcache
