#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/kv_address.h"
#include "kernels/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/cache_control.h"
#include "hwy/highway.h"
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

// Where the K tiles or V rows of one softmax block lie, for kStreams kv heads: one that all rows of
// a tile share, or one for each row.
template <std::size_t kStreams>
struct BlockTiles {
  const float* at[kStreams][kTiles];
  const float* const* of(std::size_t row) const { return at[kStreams == 1 ? 0 : row]; }
};

// Scores of kQueries queries against kCount tiles: chains over head_dim, lanes = positions.
template <std::size_t kQueries, std::size_t kCount, std::size_t kStreams>
HWY_INLINE void Scores(const float* const* q, const BlockTiles<kStreams>& tile,
                       std::size_t head_dim, float scale, V16 (*scores)[kTiles],
                       std::size_t first) {
  V16 acc[kQueries][kCount];
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t t = 0; t < kCount; ++t) acc[i][t] = Zero16();
  }
  for (std::size_t d = 0; d < head_dim; ++d) {
    V16 k[kStreams][kCount];
    KV_UNROLL
    for (std::size_t s = 0; s < kStreams; ++s) {
      KV_UNROLL
      for (std::size_t t = 0; t < kCount; ++t) {
        k[s][t] = Load16(tile.at[s][first + t] + d * kLanes);
      }
    }
    KV_UNROLL
    for (std::size_t i = 0; i < kQueries; ++i) {
      const V16 x = Set16(q[i][d]);
      const std::size_t s = kStreams == 1 ? 0 : i;
      KV_UNROLL
      for (std::size_t t = 0; t < kCount; ++t) acc[i][t] = Fma16(x, k[s][t], acc[i][t]);
    }
  }
  const V16 scale16 = Set16(scale);
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t t = 0; t < kCount; ++t) scores[i][first + t] = Mul16(acc[i][t], scale16);
  }
}

// Tiles side by side: as many chains as hide the latency and fit the registers.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kPairTiles = 4;
#else
constexpr std::size_t kPairTiles = 1;
#endif

// Of tiles first … tiles − 1.
template <std::size_t kQueries, std::size_t kStreams>
HWY_INLINE void AllScores(const float* const* q, const BlockTiles<kStreams>& tile,
                          std::size_t first, std::size_t tiles, std::size_t head_dim, float scale,
                          V16 (*scores)[kTiles]) {
  std::size_t t = first;
  constexpr std::size_t kCount = kQueries == 1 ? (kPairTiles > 2 ? 4 : 2) : kPairTiles;
  for (; t + kCount <= tiles; t += kCount)
    Scores<kQueries, kCount, kStreams>(q, tile, head_dim, scale, scores, t);
  for (; t < tiles; ++t) Scores<kQueries, 1, kStreams>(q, tile, head_dim, scale, scores, t);
}

// What a row sees of a block: positions [begin, end) of its 64.
struct Visible {
  std::size_t begin;
  std::size_t end;
  bool empty() const { return begin >= end; }
  friend bool operator==(const Visible&, const Visible&) = default;
};

// o[d] = chain over the visible positions of weight · v for kQueries queries that see the same.
template <std::size_t kQueries, std::size_t kColumns, std::size_t kStreams>
HWY_INLINE void WeighValues(const float (*weights)[kSoftmaxBlock], const BlockTiles<kStreams>& rows,
                            Visible visible, std::size_t head_dim, std::size_t column,
                            const State* states) {
  V16 acc[kQueries][kColumns];
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Zero16();
  }
  for (std::size_t j = visible.begin; j < visible.end; ++j) {
    const std::size_t offset = (j % kLanes) * head_dim + column;
    V16 v[kStreams][kColumns];
    KV_UNROLL
    for (std::size_t s = 0; s < kStreams; ++s) {
      const float* row = rows.at[s][j / kLanes] + offset;
      KV_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) v[s][c] = Load16(row + c * 16);
    }
    KV_UNROLL
    for (std::size_t i = 0; i < kQueries; ++i) {
      const V16 w = Set16(weights[i][j]);
      const std::size_t s = kStreams == 1 ? 0 : i;
      KV_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Fma16(w, v[s][c], acc[i][c]);
    }
  }
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) Store16(acc[i][c], states[i].o + column + c * 16);
  }
}

// The last columns when head_dim is no multiple of 16, one query.
HWY_INLINE void WeighValuesTail(const float* weights, const float* const* rows, Visible visible,
                                std::size_t head_dim, std::size_t column, const State& state) {
  V16 acc = Zero16();
  for (std::size_t j = visible.begin; j < visible.end; ++j) {
    const float* row = rows[j / kLanes] + (j % kLanes) * head_dim + column;
    acc = Fma16(Set16(weights[j]), LoadFirst16(row, head_dim - column), acc);
  }
  StoreFirst16(acc, state.o + column, head_dim - column);
}

template <std::size_t kQueries, std::size_t kStreams>
HWY_INLINE void AllValues(const float (*weights)[kSoftmaxBlock], const BlockTiles<kStreams>& rows,
                          Visible visible, std::size_t head_dim, const State* states) {
  std::size_t column = 0;
  for (; column + 32 <= head_dim; column += 32) {
    WeighValues<kQueries, 2, kStreams>(weights, rows, visible, head_dim, column, states);
  }
  for (; column + 16 <= head_dim; column += 16) {
    WeighValues<kQueries, 1, kStreams>(weights, rows, visible, head_dim, column, states);
  }
  if (column < head_dim) {
    KV_UNROLL
    for (std::size_t i = 0; i < kQueries; ++i) {
      WeighValuesTail(weights[i], rows.of(i), visible, head_dim, column, states[i]);
    }
  }
}

// Maximum, weights and their lane sum of one query over what it sees of a block.
HWY_INLINE void BlockSoftmax(const V16* scores, Visible visible, State& state, float* weights) {
  const std::size_t first = visible.begin / kLanes;
  const std::size_t tiles = (visible.end + kLanes - 1) / kLanes;
  V16 masked[kTiles];
  V16 max = Set16(kNegInf);
  for (std::size_t t = first; t < tiles; ++t) {
    const std::size_t left = visible.end - t * kLanes;
    masked[t] = left >= kLanes ? scores[t] : FirstLanes16(scores[t], left, Set16(kNegInf));
    const std::size_t hidden = t == first ? visible.begin % kLanes : 0;
    if (hidden > 0) masked[t] = FirstLanes16(Set16(kNegInf), hidden, masked[t]);
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

// One query of one head.
struct Row {
  const float* q;  // [head_dim]
  float* out;      // [head_dim]
  std::size_t position;
  std::size_t kv_head;
};

Row RowOf(const AttentionArgs& args, std::size_t query, std::size_t head) {
  const std::size_t column = head * args.kv.head_dim;
  return {args.q + query * args.q_stride + column, args.out + query * args.out_stride + column,
          args.first_position + query, head / (args.heads / args.kv.kv_heads)};
}

// What the query sees of the block that starts at position `base`.
HWY_INLINE Visible VisibleIn(std::size_t base, std::size_t position, std::size_t window) {
  if (position < base) return {0, 0};
  const std::size_t first = FirstVisible(position, window);
  return {first <= base ? 0 : std::min(kSoftmaxBlock, first - base),
          std::min(kSoftmaxBlock, position + 1 - base)};
}

// Asks for the beginning of each tile of the softmax block at `base`. Within a tile the processor
// sees the next lines coming; where the next tile lies only the block table knows.
HWY_INLINE void PrefetchBlock(const KvView& kv, std::size_t base, std::size_t last,
                              std::size_t kv_head) {
  constexpr std::size_t kLines = 4;
  constexpr std::size_t kLineFloats = 16;
  const std::size_t tile_lines = std::min<std::size_t>(kLines, kv.head_dim);
  for (std::size_t p = base; p < base + kSoftmaxBlock && p <= last; p += kLanes) {
    const float* k = KTile(kv, p, kv_head);
    const float* v = VRow(kv, p, kv_head);
    for (std::size_t line = 0; line < tile_lines; ++line) {
      hwy::Prefetch(k + line * kLineFloats);
      hwy::Prefetch(v + line * kLineFloats);
    }
  }
}

// kRows rows, positions ascending: of one kv head (kStreams = 1), or of one query and a kv head
// each (kStreams = kRows): chains and reads of several heads go on side by side, where one head's
// would wait for each other.
template <std::size_t kRows, std::size_t kStreams>
void RowTile(const AttentionArgs& args, const Row* rows) {
  static_assert(kStreams == 1 || kStreams == kRows);
  const KvView& kv = args.kv;
  const std::size_t head_dim = kv.head_dim;
  const std::size_t padded = (head_dim + 15) / 16 * 16;
  const float* q[kRows];
  HWY_ALIGN float buffer[kRows][3][kMaxHeadDim];  // block, segment, total sums of V
  State total[kRows], segment[kRows], block[kRows];
  KV_UNROLL
  for (std::size_t i = 0; i < kRows; ++i) {
    q[i] = rows[i].q;
    for (float(&row)[kMaxHeadDim] : buffer[i]) std::fill_n(row, padded, 0.0f);
    block[i] = {kNegInf, 0, buffer[i][0]};
    segment[i] = {kNegInf, 0, buffer[i][1]};
    total[i] = {kNegInf, 0, buffer[i][2]};
  }
  const std::size_t first = FirstVisible(rows[0].position, args.window);  // that any row sees
  const std::size_t last = rows[kRows - 1].position;
  for (std::size_t base = first / kSoftmaxBlock * kSoftmaxBlock; base <= last;
       base += kSoftmaxBlock) {
    BlockTiles<kStreams> k_tiles;
    BlockTiles<kStreams> v_rows;
    const std::size_t first_tile = first <= base ? 0 : (first - base) / kLanes;
    const std::size_t tiles = std::min(kTiles, (last - base) / kLanes + 1);
    for (std::size_t s = 0; s < kStreams; ++s) {
      for (std::size_t t = first_tile; t < tiles; ++t) {
        k_tiles.at[s][t] = KTile(kv, base + t * kLanes, rows[s].kv_head);
        v_rows.at[s][t] = VRow(kv, base + t * kLanes, rows[s].kv_head);
      }
      PrefetchBlock(kv, base + kSoftmaxBlock, last, rows[s].kv_head);
    }
    V16 scores[kRows][kTiles];
    AllScores<kRows, kStreams>(q, k_tiles, first_tile, tiles, head_dim, args.scale, scores);
    HWY_ALIGN float weights[kRows][kSoftmaxBlock];
    Visible visible[kRows];
    bool same = true;
    KV_UNROLL
    for (std::size_t i = 0; i < kRows; ++i) {
      visible[i] = VisibleIn(base, rows[i].position, args.window);
      same = same && visible[i] == visible[0];
      if (!visible[i].empty()) BlockSoftmax(scores[i], visible[i], block[i], weights[i]);
    }
    if (same) {
      AllValues<kRows, kStreams>(weights, v_rows, visible[0], head_dim, block);
    } else {
      // Rows of one query see the same, so these are queries of one head.
      if constexpr (kStreams == 1) {
        KV_UNROLL
        for (std::size_t i = 0; i < kRows; ++i) {
          if (!visible[i].empty()) {
            AllValues<1, 1>(weights + i, v_rows, visible[i], head_dim, block + i);
          }
        }
      }
    }
    const bool segment_ends = (base + kSoftmaxBlock) % kSoftmaxSegment == 0;
    KV_UNROLL
    for (std::size_t i = 0; i < kRows; ++i) {
      if (!visible[i].empty()) Merge(segment[i], block[i], head_dim);
      if (segment_ends && segment[i].m != kNegInf) {
        Merge(total[i], segment[i], head_dim);
        segment[i].m = kNegInf;
      }
    }
  }
  KV_UNROLL
  for (std::size_t i = 0; i < kRows; ++i) {
    if (segment[i].m != kNegInf) Merge(total[i], segment[i], head_dim);
    const V16 l16 = Set16(total[i].l);
    for (std::size_t d = 0; d < head_dim; d += 16) {
      const V16 y = Div16(Load16(total[i].o + d), l16);
      if (d + 16 <= head_dim) {
        Store16(y, rows[i].out + d);
      } else {
        StoreFirst16(y, rows[i].out + d, head_dim - d);
      }
    }
  }
}

// The given heads of one query: those that share a kv head side by side, or, where none do, heads
// with a kv head each.
template <bool kShared>
void HeadTiles(const AttentionArgs& args, std::size_t query, base::IndexRange heads) {
  constexpr std::size_t kMost = kAttentionTileRows;
  Row rows[kMost];
  for (std::size_t head = heads.begin; head < heads.end;) {
    const std::size_t left = heads.end - head;
    const std::size_t count = left >= kMost ? kMost : left >= 2 ? 2 : 1;
    for (std::size_t i = 0; i < count; ++i) rows[i] = RowOf(args, query, head + i);
    if (count == kMost) {
      RowTile<kMost, kShared ? 1 : kMost>(args, rows);
    } else if (count == 2) {
      RowTile<2, kShared ? 1 : 2>(args, rows);
    } else {
      RowTile<1, 1>(args, rows);
    }
    head += count;
  }
}

void AttentionImpl(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads) {
  const std::size_t group = args.heads / args.kv.kv_heads;
  const std::size_t tiled = queries.size() / kAttentionTileRows * kAttentionTileRows;
  for (std::size_t head = heads.begin; head < heads.end && tiled > 0; ++head) {
    for (std::size_t i = 0; i < tiled; i += kAttentionTileRows) {
      Row rows[kAttentionTileRows];
      for (std::size_t j = 0; j < kAttentionTileRows; ++j) {
        rows[j] = RowOf(args, queries.begin + i + j, head);
      }
      RowTile<kAttentionTileRows, 1>(args, rows);
    }
  }
  for (std::size_t query = queries.begin + tiled; query < queries.end; ++query) {
    if (group == 1) {
      HeadTiles<false>(args, query, heads);
      continue;
    }
    for (std::size_t begin = heads.begin; begin < heads.end;) {
      const std::size_t end = std::min(heads.end, (begin / group + 1) * group);
      HeadTiles<true>(args, query, {begin, end});
      begin = end;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(AttentionImpl);

void Attention(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads) {
  KV_CHECK(args.kv.head_dim <= kMaxHeadDim && args.window >= 1);
  HWY_DYNAMIC_DISPATCH(AttentionImpl)(args, queries, heads);
}

void StoreKv(const KvView& view, std::size_t position, const float* k_row, const float* v_row) {
  const std::size_t lane = position % kLanes;
  for (std::size_t head = 0; head < view.kv_heads; ++head) {
    float* k = KTile(view, position, head);
    for (std::size_t d = 0; d < view.head_dim; ++d)
      k[d * kLanes + lane] = k_row[head * view.head_dim + d];
    std::copy_n(v_row + head * view.head_dim, view.head_dim, VRow(view, position, head));
  }
}

void LoadKv(const KvView& view, std::size_t position, std::size_t kv_head, float* k, float* v) {
  const float* tile = KTile(view, position, kv_head);
  for (std::size_t d = 0; d < view.head_dim; ++d) k[d] = tile[d * kLanes + position % kLanes];
  std::copy_n(VRow(view, position, kv_head), view.head_dim, v);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
