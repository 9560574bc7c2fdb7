// The order of attention's softmax (R3) by the definition, whatever keys and values look like: for
// the plain references of the attention kernels.
#ifndef KVASIR_KERNELS_REFERENCE_SOFTMAX_H_
#define KVASIR_KERNELS_REFERENCE_SOFTMAX_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
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

// Sixteen partial sums, of which a number at i joins that of i mod 16, folded 8-4-2-1 (R2).
class ReferenceLaneSum {
 public:
  float& At(std::size_t i) { return lane_[i % kLanes]; }
  float Fold() const {
    float lane[kLanes];
    std::copy_n(lane_, kLanes, lane);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    return lane[0];
  }

 private:
  float lane_[kLanes] = {};
};

// Positions of a query, ascending.
using SeenPositions = std::span<const std::size_t>;

// Those of one block of 64: score(j) is a number; weigh(positions, weights, o) sets o [width],
// zeros before, to the weighted sum of their values.
template <typename Score, typename Weigh>
ReferenceState ReferenceBlock(SeenPositions positions, std::size_t width, const Score& score,
                              const Weigh& weigh) {
  ReferenceState state;
  std::vector<float> weights;
  for (const std::size_t j : positions) {
    weights.push_back(score(j));
    state.m = std::max(state.m, weights.back());
  }
  ReferenceLaneSum sum;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    weights[i] = ExpF32(weights[i] - state.m);
    sum.At(positions[i]) += weights[i];
  }
  state.l = sum.Fold();
  state.o.assign(width, 0.0f);
  weigh(positions, std::span<const float>(weights), state.o.data());
  return state;
}

// out [width] = what a query sees of these positions (at least one).
template <typename Score, typename Weigh>
void ReferenceSoftmax(SeenPositions positions, std::size_t width, const Score& score,
                      const Weigh& weigh, float* out) {
  ReferenceState total;
  ReferenceState segment;
  for (std::size_t begin = 0; begin < positions.size();) {
    const auto same = [&](std::size_t i, std::size_t size) {
      return i < positions.size() && positions[i] / size == positions[begin] / size;
    };
    std::size_t end = begin + 1;
    while (same(end, kSoftmaxBlock)) ++end;
    MergeReference(segment,
                   ReferenceBlock(positions.subspan(begin, end - begin), width, score, weigh));
    if (!same(end, kSoftmaxSegment)) {
      MergeReference(total, segment);
      segment = {};
    }
    begin = end;
  }
  for (std::size_t d = 0; d < width; ++d) out[d] = total.o[d] / total.l;
}

// weights [width] = how much of each position is in that sum, 0 where nothing is: what it gives if
// the value of position j is the j-th unit vector.
template <typename Score>
void ReferenceSoftmaxWeights(SeenPositions positions, std::size_t width, const Score& score,
                             float* weights) {
  const auto weigh = [](SeenPositions block, std::span<const float> of_block, float* o) {
    for (std::size_t i = 0; i < block.size(); ++i) o[block[i]] = of_block[i];
  };
  ReferenceSoftmax(positions, width, score, weigh, weights);
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_REFERENCE_SOFTMAX_H_
