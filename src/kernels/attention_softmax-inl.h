// The softmax of attention (R3): what a query sees of a block of 64 positions, its weights, and how
// blocks merge. Per-target include.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef KVASIR_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define KVASIR_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include "kernels/attention.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

constexpr std::size_t kTiles = kSoftmaxBlock / kLanes;  // K tiles of one softmax block
constexpr float kNegInf = -HUGE_VALF;

// Running softmax of one query: maximum, sum of weights, and where its weighted sum of V lies.
struct State {
  float m;
  float l;
  float* o;  // [head_dim]
};

// Merges `block` into `total`, which it replaces when total is empty (m = −∞).
HWY_INLINE void Merge(State& total, const State& block, std::size_t head_dim) {
  if (total.m == kNegInf) {
    total.m = block.m;
    total.l = block.l;
    std::copy_n(block.o, head_dim, total.o);
    return;
  }
  const float m = std::max(total.m, block.m);
  const DF d;
  const VF exponent =
      ExpVector(hn::IfThenElse(hn::FirstN(d, 1), hn::Set(d, total.m - m), hn::Set(d, block.m - m)));
  HWY_ALIGN float factor[16];
  hn::Store(exponent, d, factor);
  const float a = factor[0];
  const float b = factor[1];
  const VF a_vector = hn::Set(d, a);
  const VF b_vector = hn::Set(d, b);
  total.m = m;
  total.l = hwy::HWY_NAMESPACE::GetLane(
      hn::MulAdd(hn::Set(d, total.l), a_vector, hn::Mul(hn::Set(d, block.l), b_vector)));
  for (std::size_t i = 0; i < head_dim; i += kWidth) {  // Buffers are padded to 16.
    hn::Store(
        hn::MulAdd(hn::Load(d, total.o + i), a_vector, hn::Mul(hn::Load(d, block.o + i), b_vector)),
        d, total.o + i);
  }
}

// What a row sees of a block: positions [begin, end) of its 64 and, before a gap, [0, sinks).
struct Visible {
  std::size_t sinks;  // < begin; where there is no gap they belong to [begin, end).
  std::size_t begin;
  std::size_t end;
  bool empty() const { return begin >= end; }
  bool SeesTile(std::size_t tile) const {
    const std::size_t first = tile * kLanes;
    return first < sinks || (first < end && first + kLanes > begin);
  }
  friend bool operator==(const Visible&, const Visible&) = default;
};

// What the query sees of the block that starts at position `base`.
HWY_INLINE Visible VisibleIn(std::size_t base, std::size_t position, std::size_t window,
                             std::size_t sinks) {
  if (position < base) return {0, 0, 0};
  const std::size_t first = FirstVisible(position, window);
  const std::size_t begin = first <= base ? 0 : std::min(kSoftmaxBlock, first - base);
  const std::size_t end = std::min(kSoftmaxBlock, position + 1 - base);
  const std::size_t seen_sinks = VisibleSinks(position, sinks);
  if (seen_sinks <= base) return {0, begin, end};
  const std::size_t here = std::min(kSoftmaxBlock, seen_sinks - base);
  if (begin >= end) return {0, 0, here};
  if (here >= begin) return {0, 0, end};
  return {here, begin, end};
}

// −∞ in place of the scores that the row does not see.
HWY_INLINE V16 MaskScores(const V16& scores, Visible visible, std::size_t tile) {
  const std::size_t first = tile * kLanes;
  if (visible.begin <= first && visible.end >= first + kLanes) return scores;
  const V16 hidden = Set16(kNegInf);
  const auto lanes_to = [first](std::size_t end) { return end <= first ? 0 : end - first; };
  V16 masked = scores;
  if (lanes_to(visible.end) < kLanes) masked = FirstLanes16(masked, lanes_to(visible.end), hidden);
  if (lanes_to(visible.begin) > 0) masked = FirstLanes16(hidden, lanes_to(visible.begin), masked);
  if (lanes_to(visible.sinks) > 0) masked = FirstLanes16(scores, lanes_to(visible.sinks), masked);
  return masked;
}

// Maximum, weights and their lane sum of one query over what it sees of a block; weights of other
// positions in the tiles from the first it sees to the last are 0.
HWY_INLINE void BlockSoftmax(const V16* scores, Visible visible, State& state, float* weights) {
  const std::size_t first = visible.sinks > 0 ? 0 : visible.begin / kLanes;
  const std::size_t tiles = (visible.end + kLanes - 1) / kLanes;
  V16 masked[kTiles];
  V16 max = Set16(kNegInf);
  for (std::size_t t = first; t < tiles; ++t) {
    masked[t] = MaskScores(scores[t], visible, t);
    max = Max16(max, masked[t]);
  }
  state.m = MaxLane16(max);
  const V16 m16 = Set16(state.m);
  V16 sum = Zero16();
  for (std::size_t t = first; t < tiles; ++t) {
    const V16 p = Exp16(Sub16(masked[t], m16));  // exp(−∞) is exactly 0 where not visible.
    sum = Add16(sum, p);
    Store16(p, weights + t * kLanes);
  }
  state.l = Fold16(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
