// Where a position's tiles and scales lie in a KvView.
#ifndef KVASIR_KERNELS_KV_ADDRESS_H_
#define KVASIR_KERNELS_KV_ADDRESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"

namespace kvasir::kernels {

// Index of the position's tile among those of all kv heads in its block.
inline std::size_t TileIndex(const KvView& kv, std::size_t position, std::size_t kv_head) {
  return kv_head * (kv.block_tokens / kLanes) + position % kv.block_tokens / kLanes;
}

// The tiles that hold this position, in lane (K) or row (V) position % 16.
inline std::byte* KTile(const KvView& kv, std::size_t position, std::size_t kv_head) {
  return kv.blocks[position / kv.block_tokens] + kv.k_offset +
         TileIndex(kv, position, kv_head) * KTileBytes(kv.k_type, kv.head_dim);
}
inline std::byte* VTile(const KvView& kv, std::size_t position, std::size_t kv_head) {
  return kv.blocks[position / kv.block_tokens] + kv.v_offset +
         TileIndex(kv, position, kv_head) * VTileBytes(kv.v_type, kv.head_dim);
}
// kInt4Channel: the f32 tile of the tail.
inline std::byte* TailTile(const KvView& kv, std::size_t position, std::size_t kv_head) {
  return kv.tail_blocks[position / kv.block_tokens] + kv.tail_offset +
         TileIndex(kv, position, kv_head) * KTileBytes(KvType::kF32, kv.head_dim);
}
// kInt4Channel: scales [head_dim] of the position's group, then minima [head_dim].
inline std::uint16_t* ChannelScales(const KvView& kv, std::size_t position, std::size_t kv_head) {
  const std::size_t groups = std::max<std::size_t>(1, kv.block_tokens / kv.group);
  const std::size_t index = kv_head * groups + position % kv.block_tokens / kv.group;
  return reinterpret_cast<std::uint16_t*>(kv.blocks[position / kv.block_tokens] +
                                          kv.k_scale_offset +
                                          index * ChannelScaleBytes(kv.head_dim));
}

// The scales [16] of a tile of int8 or int4, then, of int4, the minima [16].
inline std::uint16_t* TileScales(std::byte* tile, KvType type, std::size_t head_dim) {
  return reinterpret_cast<std::uint16_t*>(tile + TileNumberBytes(type, head_dim));
}
inline const std::uint16_t* TileScales(const std::byte* tile, KvType type, std::size_t head_dim) {
  return reinterpret_cast<const std::uint16_t*>(tile + TileNumberBytes(type, head_dim));
}

// Where channel d lies in a value row of 4-bit numbers (kv_type.h).
struct NibblePlace {
  std::size_t byte;
  bool high;
};
inline NibblePlace ValueNibble(std::size_t d, std::size_t head_dim) {
  constexpr std::size_t kRun = 32;
  const std::size_t run = d / kRun * kRun;
  const std::size_t bytes = (std::min(kRun, head_dim - run) + 1) / 2;
  const std::size_t in_run = d - run;
  return {run / 2 + in_run % bytes, in_run >= bytes};
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_ADDRESS_H_
