// The order of attention's softmax (R3) by the definition, whatever keys and values look like: for
// the plain references of the attention kernels.
#ifndef KVASIR_KERNELS_REFERENCE_SOFTMAX_H_
#define KVASIR_KERNELS_REFERENCE_SOFTMAX_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/attention.h"
#include "kernels/scalar_math.h"

namespace kvasir::kernels {

struct ReferenceState {
  float m = -HUGE_VALF;
  float l = 0;
  std::vector<float> o;  // [width]; empty: nothing seen yet
};

inline void MergeReference(ReferenceState& total, const ReferenceState& part) {
  if (part.o.empty()) return;
  if (total.o.empty()) {
    total = part;
    return;
  }
  const float m = std::max(total.m, part.m);
  const float a = ExpF32(total.m - m);
  const float b = ExpF32(part.m - m);
  total.m = m;
  total.l = std::fma(total.l, a, part.l * b);
  for (std::size_t d = 0; d < total.o.size(); ++d) {
    total.o[d] = std::fma(total.o[d], a, part.o[d] * b);
  }
}

// Positions begin … end − 1 of one block of 64: score(j) is a number, value(j) a row [width].
template <typename Score, typename Value>
ReferenceState ReferenceBlock(std::size_t begin, std::size_t end, std::size_t width,
                              const Score& score, const Value& value) {
  ReferenceState state;
  std::vector<float> scores;
  for (std::size_t j = begin; j < end; ++j) {
    scores.push_back(score(j));
    state.m = std::max(state.m, scores.back());
  }
  float lane[kLanes] = {};
  state.o.assign(width, 0.0f);
  for (std::size_t j = begin; j < end; ++j) {
    const float p = ExpF32(scores[j - begin] - state.m);
    lane[j % kLanes] += p;
    const float* row = value(j);
    for (std::size_t d = 0; d < width; ++d) state.o[d] = std::fma(p, row[d], state.o[d]);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  state.l = lane[0];
  return state;
}

// out [width] = what a query sees of positions first … seen − 1 (at least one).
template <typename Score, typename Value>
void ReferenceSoftmax(std::size_t first, std::size_t seen, std::size_t width, const Score& score,
                      const Value& value, float* out) {
  ReferenceState total;
  for (std::size_t segment = 0; segment < seen; segment += kSoftmaxSegment) {
    ReferenceState sum;
    const std::size_t end = std::min(seen, segment + kSoftmaxSegment);
    for (std::size_t block = segment; block < end; block += kSoftmaxBlock) {
      const std::size_t begin = std::max(block, first);
      const std::size_t block_end = std::min(end, block + kSoftmaxBlock);
      if (begin >= block_end) continue;
      MergeReference(sum, ReferenceBlock(begin, block_end, width, score, value));
    }
    MergeReference(total, sum);
  }
  for (std::size_t d = 0; d < width; ++d) out[d] = total.o[d] / total.l;
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_REFERENCE_SOFTMAX_H_
