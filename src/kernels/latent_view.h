// The view of cached latents that multi-head latent attention walks. A plain struct: kvcache fills
// it, and a kernel test needs nothing but arrays.
#ifndef KVASIR_KERNELS_LATENT_VIEW_H_
#define KVASIR_KERNELS_LATENT_VIEW_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// One layer's entries of one sequence, in blocks of block_tokens positions: of each position one
// row, the latent and then the rotated key, which all heads share:
//   f32 [block_tokens][latent_dim + rope_dim]  at blocks[b] + offset
// Position t lies in block t / block_tokens at slot t % block_tokens. The whole row is the key; its
// first latent_dim values are also the value. Block addresses are 64-byte aligned and the offset a
// multiple of 64; rows are not aligned. Slots at or beyond the sequence's length hold anything.
struct LatentView {
  std::byte* const* blocks = nullptr;  // [at least ceil(length / block_tokens)]
  std::size_t offset = 0;              // bytes
  std::uint32_t block_tokens = 0;      // 16 … 256, a multiple of 16
  std::uint32_t latent_dim = 0;
  std::uint32_t rope_dim = 0;

  std::size_t width() const { return std::size_t{latent_dim} + rope_dim; }
  float* Row(std::size_t position) const {  // [width]
    std::byte* block = blocks[position / block_tokens] + offset;
    return reinterpret_cast<float*>(block) + position % block_tokens * width();
  }
};

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_LATENT_VIEW_H_
