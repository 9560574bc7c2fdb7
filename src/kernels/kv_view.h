// The view of cached keys and values that attention walks. A plain struct: kvcache fills it, and a
// kernel test needs nothing but arrays.
#ifndef KVASIR_KERNELS_KV_VIEW_H_
#define KVASIR_KERNELS_KV_VIEW_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// Positions a K tile holds; also the number of virtual lanes of every vector reduction (R2).
inline constexpr std::size_t kLanes = 16;

// One layer's keys and values of one sequence, in blocks of block_tokens positions. Position t lies
// in block t / block_tokens at slot s = t % block_tokens:
//   K: f32 [kv_heads][block_tokens / 16][head_dim][16]  at blocks[b] + k_offset  (tiles, R3)
//   V: f32 [kv_heads][block_tokens][head_dim]           at blocks[b] + v_offset  (rows, R3)
// Block addresses are 64-byte aligned and offsets multiples of 64, so every tile row is aligned.
// Slots at or beyond the sequence's length hold anything; kernels never let them reach a result.
struct KvView {
  std::byte* const* blocks = nullptr;  // [at least ceil(length / block_tokens)]
  std::size_t k_offset = 0;            // bytes
  std::size_t v_offset = 0;            // bytes
  std::uint32_t block_tokens = 0;      // 16 … 256, a multiple of 16
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
};

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_VIEW_H_
