// The view of cached keys and values that attention walks. A plain struct: kvcache fills it, and a
// kernel test needs nothing but arrays.
#ifndef KVASIR_KERNELS_KV_VIEW_H_
#define KVASIR_KERNELS_KV_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv_type.h"

namespace kvasir::kernels {

// One layer's keys and values of one sequence, or a run of its kv heads, in blocks of block_tokens
// positions. Position t lies in block t / block_tokens at slot s = t % block_tokens:
//   K: [kv_heads][block_tokens / 16] tiles of k_type  at blocks[b] + k_offset  (R3; kv_type.h)
//   V: [kv_heads][block_tokens / 16] tiles of v_type  at blocks[b] + v_offset
// Of f32, block addresses and offsets are multiples of 64, so every tile row is aligned; of other
// types, multiples of 16. Slots at or beyond the sequence's length hold anything; kernels never let
// them reach a result. A block that no query sees may be null: it is never touched.
//
// Keys of kInt4Channel are rounded a whole group of `group` positions at a time, groups aligned to
// absolute positions. A query sees the keys of its own group in f32, from the tail, and earlier
// groups rounded.
struct KvView {
  std::byte* const* blocks = nullptr;  // [at least ceil(length / block_tokens)]
  std::size_t k_offset = 0;            // bytes
  std::size_t v_offset = 0;            // bytes
  std::uint32_t block_tokens = 0;      // 16 … 256, a multiple of 16
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  KvType k_type = KvType::kF32;
  KvType v_type = KvType::kF32;
  // kInt4Channel:
  std::uint32_t group = 0;  // 16, 32, 64, 128 or 256; divides block_tokens or is a multiple of it
  // At blocks[b] + k_scale_offset, bytes: [kv_heads][max(1, block_tokens / group)] times bf16
  // scales [head_dim], bf16 minima [head_dim]. Every block of a group longer than a block has a
  // copy.
  std::size_t k_scale_offset = 0;
  // f32 [kv_heads][block_tokens / 16][head_dim][16] at tail_blocks[b] + tail_offset (bytes, a
  // multiple of 64), of the positions from the start of the first query's group on; other entries
  // may be null.
  std::byte* const* tail_blocks = nullptr;
  std::size_t tail_offset = 0;
};

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_VIEW_H_
