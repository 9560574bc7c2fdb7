// Where a position's key tile and value row lie in a KvView.
#ifndef KVASIR_KERNELS_KV_ADDRESS_H_
#define KVASIR_KERNELS_KV_ADDRESS_H_

#include <cstddef>

#include "kernels/kv_view.h"

namespace kvasir::kernels {

// The tile [head_dim][16] that holds this position's key, in lane position % 16.
inline float* KTile(const KvView& kv, std::size_t position, std::size_t kv_head) {
  std::byte* block = kv.blocks[position / kv.block_tokens] + kv.k_offset;
  const std::size_t tile = position % kv.block_tokens / kLanes;
  const std::size_t tiles = kv.block_tokens / kLanes;
  return reinterpret_cast<float*>(block) + (kv_head * tiles + tile) * kv.head_dim * kLanes;
}

// The value row [head_dim] of this position; the rest of its tile's 16 rows follow.
inline float* VRow(const KvView& kv, std::size_t position, std::size_t kv_head) {
  std::byte* block = kv.blocks[position / kv.block_tokens] + kv.v_offset;
  const std::size_t slot = position % kv.block_tokens;
  return reinterpret_cast<float*>(block) + (kv_head * kv.block_tokens + slot) * kv.head_dim;
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_ADDRESS_H_
