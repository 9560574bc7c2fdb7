#include "kernels/latent_attention.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/latent_attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

// All heads of a query see the same rows, so 16 heads fill the virtual lanes: every lane runs the
// scalar algorithm for its head, and each cached value is read once for 16 heads. No lane is ever
// combined with another.

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

constexpr std::size_t kHeadLanes = 16;
// Chains side by side: enough to hide the latency, few enough to stay in registers.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kScoreChains = 8;
constexpr std::size_t kValueChains = 16;
#else
constexpr std::size_t kScoreChains = 4;
constexpr std::size_t kValueChains = 4;
#endif
static_assert(kSoftmaxBlock % kScoreChains == 0);

// Running softmax of 16 heads: maxima, sums of weights, and their weighted sums of latents.
struct HeadStates {
  V16 m;
  V16 l;
  float* o;  // [latent_dim][16 heads]
  bool empty;
};

// Merges `part` into `total`, which it replaces when total is empty.
HWY_INLINE void MergeHeads(HeadStates& total, const HeadStates& part, std::size_t latent_dim) {
  if (total.empty) {
    total.m = part.m;
    total.l = part.l;
    total.empty = false;
    std::copy_n(part.o, latent_dim * kHeadLanes, total.o);
    return;
  }
  const V16 m = Max16(total.m, part.m);
  const V16 a = Exp16(Sub16(total.m, m));
  const V16 b = Exp16(Sub16(part.m, m));
  total.m = m;
  total.l = Fma16(total.l, a, Mul16(part.l, b));
  for (std::size_t i = 0; i < latent_dim * kHeadLanes; i += kHeadLanes) {
    Store16(Fma16(Load16(total.o + i), a, Mul16(Load16(part.o + i), b)), total.o + i);
  }
}

// The rows of one softmax block; those beyond `count` repeat the last.
struct BlockRows {
  const float* row[kSoftmaxBlock];
  std::size_t count;
};

HWY_INLINE BlockRows RowsOf(const LatentView& latents, std::size_t first, std::size_t count) {
  BlockRows rows;
  rows.count = count;
  for (std::size_t j = 0; j < kSoftmaxBlock; ++j) {
    rows.row[j] = latents.Row(first + std::min(j, count - 1));
  }
  return rows;
}

// scores[j] = chain over the row's values, times scale. Where fewer rows than chains are left, the
// last one is computed several times and the surplus never looked at. Meanwhile the rows of `next`,
// the block to come, are fetched, a cache line of 16 values at a time: rows are too short for the
// processor to see them coming.
HWY_INLINE void HeadScores(const float* q, const BlockRows& rows, const BlockRows& next,
                           std::size_t width, float scale, float* scores) {
  for (std::size_t j = 0; j < rows.count; j += kScoreChains) {
    const float* row[kScoreChains];
    V16 acc[kScoreChains];
    KV_UNROLL
    for (std::size_t i = 0; i < kScoreChains; ++i) {
      row[i] = rows.row[j + i];
      acc[i] = Zero16();
    }
    for (std::size_t d = 0; d < width; ++d) {
      if (d % 16 == 0) {
        for (std::size_t i = 0; i < kScoreChains; ++i) __builtin_prefetch(next.row[j + i] + d);
      }
      const V16 x = Load16(q + d * kHeadLanes);
      KV_UNROLL
      for (std::size_t i = 0; i < kScoreChains; ++i) acc[i] = Fma16(x, Set16(row[i][d]), acc[i]);
    }
    const V16 scale16 = Set16(scale);
    KV_UNROLL
    for (std::size_t i = 0; i < kScoreChains; ++i) {
      Store16(Mul16(acc[i], scale16), scores + (j + i) * kHeadLanes);
    }
  }
}

// Maximum, weights (in place of the scores) and their sum over `count` positions. The sum is R2's
// over positions, 16 partial sums folded 8-4-2-1, for each head in its lane.
HWY_INLINE void HeadSoftmax(float* scores, std::size_t count, HeadStates& state) {
  state.m = Load16(scores);
  for (std::size_t j = 1; j < count; ++j) {
    state.m = Max16(state.m, Load16(scores + j * kHeadLanes));
  }
  V16 sum[kLanes];
  for (V16& lane : sum) lane = Zero16();
  for (std::size_t j = 0; j < count; ++j) {
    float* score = scores + j * kHeadLanes;
    const V16 p = Exp16(Sub16(Load16(score), state.m));
    Store16(p, score);
    sum[j % kLanes] = Add16(sum[j % kLanes], p);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sum[i] = Add16(sum[i], sum[i + half]);
  }
  state.l = sum[0];
}

// o[d] = chain over positions of weight · latent for kColumns values of the latent.
template <std::size_t kColumns>
HWY_INLINE void WeighLatents(const float* weights, const BlockRows& rows, std::size_t column,
                             float* o) {
  V16 acc[kColumns];
  KV_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) acc[c] = Zero16();
  for (std::size_t j = 0; j < rows.count; ++j) {
    const V16 w = Load16(weights + j * kHeadLanes);
    const float* row = rows.row[j] + column;
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) acc[c] = Fma16(w, Set16(row[c]), acc[c]);
  }
  KV_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) Store16(acc[c], o + (column + c) * kHeadLanes);
}

HWY_INLINE void AllLatents(const float* weights, const BlockRows& rows, std::size_t latent_dim,
                           float* o) {
  std::size_t column = 0;
  for (; column + kValueChains <= latent_dim; column += kValueChains) {
    WeighLatents<kValueChains>(weights, rows, column, o);
  }
  for (; column < latent_dim; ++column) WeighLatents<1>(weights, rows, column, o);
}

// One query and up to 16 of its heads; lanes without a head compute with zeros.
void HeadGroup(const LatentAttentionArgs& args, std::size_t query, base::IndexRange heads) {
  const LatentView& latents = args.latents;
  const std::size_t latent_dim = latents.latent_dim;
  const std::size_t width = latents.width();
  HWY_ALIGN float q[(kMaxLatentDim + kMaxLatentRopeDim) * kHeadLanes];  // [width][16]
  HWY_ALIGN float sums[3][kMaxLatentDim * kHeadLanes];                  // block, segment, total
  HWY_ALIGN float scores[kSoftmaxBlock * kHeadLanes];                   // [64][16], then weights
  std::fill_n(q, width * kHeadLanes, 0.0f);
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    const float* from = args.q + query * args.q_stride + head * width;
    float* to = q + head - heads.begin;
    for (std::size_t d = 0; d < width; ++d) to[d * kHeadLanes] = from[d];
  }
  HeadStates block = {Zero16(), Zero16(), sums[0], true};
  HeadStates segment = {Zero16(), Zero16(), sums[1], true};
  HeadStates total = {Zero16(), Zero16(), sums[2], true};
  const std::size_t seen = args.first_position + query + 1;  // positions 0 … seen − 1
  const auto rows_at = [&](std::size_t base) {
    return RowsOf(latents, base, std::min(kSoftmaxBlock, seen - base));
  };
  BlockRows rows = rows_at(0);
  for (std::size_t base = 0; base < seen; base += kSoftmaxBlock) {
    const std::size_t count = rows.count;
    const BlockRows next = base + count < seen ? rows_at(base + kSoftmaxBlock) : rows;
    HeadScores(q, rows, next, width, args.scale, scores);
    HeadSoftmax(scores, count, block);
    AllLatents(scores, rows, latent_dim, block.o);
    MergeHeads(segment, block, latent_dim);
    if ((base + kSoftmaxBlock) % kSoftmaxSegment == 0 || base + count == seen) {
      MergeHeads(total, segment, latent_dim);
      segment.empty = true;
    }
    rows = next;
  }
  for (std::size_t d = 0; d < latent_dim; ++d) {
    float* o = total.o + d * kHeadLanes;
    Store16(Div16(Load16(o), total.l), o);
  }
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    float* out = args.out + query * args.out_stride + head * latent_dim;
    const float* from = total.o + head - heads.begin;
    for (std::size_t d = 0; d < latent_dim; ++d) out[d] = from[d * kHeadLanes];
  }
}

void LatentAttentionImpl(const LatentAttentionArgs& args, base::IndexRange queries,
                         base::IndexRange heads) {
  for (std::size_t query = queries.begin; query < queries.end; ++query) {
    for (std::size_t head = heads.begin; head < heads.end; head += kHeadLanes) {
      HeadGroup(args, query, {head, std::min(heads.end, head + kHeadLanes)});
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(LatentAttentionImpl);

void LatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                     base::IndexRange heads) {
  KV_CHECK(args.latents.latent_dim >= 1 && args.latents.latent_dim <= kMaxLatentDim);
  KV_CHECK(args.latents.rope_dim <= kMaxLatentRopeDim);
  KV_CHECK(heads.end <= args.heads);
  HWY_DYNAMIC_DISPATCH(LatentAttentionImpl)(args, queries, heads);
}

void StoreLatent(const LatentView& view, std::size_t position, const float* latent,
                 const float* rope_key) {
  float* row = view.Row(position);
  std::copy_n(latent, view.latent_dim, row);
  std::copy_n(rope_key, view.rope_dim, row + view.latent_dim);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
