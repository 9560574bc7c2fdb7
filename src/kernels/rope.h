// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): pairs of channels of a query or key
// are turned by angles that grow with its position.
#ifndef KVASIR_KERNELS_ROPE_H_
#define KVASIR_KERNELS_ROPE_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// Which two of the 2 · pairs channels pair i turns.
enum class RopePairing : std::uint8_t {
  kNeighbours,  // 2i and 2i + 1: llama in GGUF, and the paper.
  kHalves,      // i and i + pairs: qwen2, qwen3, GPT-NeoX.
};

// The turn of one position: cos and sin of position · frequencies[i], in f64 with our own range
// reduction (R4), then rounded to f32. A function of the position and the frequency alone. Requires
// |position · frequency| <= kMaxAngle (scalar_math.h).
//   turn: [2][pairs], cosines first.
void RopeTurn(const double* frequencies, std::size_t pairs, std::size_t position, float* turn);
void ReferenceRopeTurn(const double* frequencies, std::size_t pairs, std::size_t position,
                       float* turn);

struct RopeArgs {
  const float* turn = nullptr;  // [2][pairs]
  std::size_t pairs = 0;
  RopePairing pairing = RopePairing::kNeighbours;
  std::size_t heads = 0;
  std::size_t head_stride = 0;  // From a head to the next, >= 2 · pairs.
  float* x = nullptr;           // [heads][head_stride]; changed in place
};

// Turns the first 2 · pairs channels of every head and leaves the others:
//   x0' = fma(x0, cos, −(x1 · sin)), x1' = fma(x1, cos, x0 · sin).
void Rope(const RopeArgs& args);
void ReferenceRope(const RopeArgs& args);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_ROPE_H_
