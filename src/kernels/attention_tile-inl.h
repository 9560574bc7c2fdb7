// Attention of a few rows side by side over all positions they see. Per-target include.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_ATTENTION_TILE_INL_H_
#undef KVASIR_KERNELS_ATTENTION_TILE_INL_H_
#else
#define KVASIR_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include "kernels/attention.h"
#include "kernels/attention_keys-inl.h"
#include "kernels/attention_softmax-inl.h"
#include "kernels/attention_values-inl.h"
#include "kernels/hadamard.h"
#include "kernels/kv_address.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// One query of one head.
struct Row {
  const float* q;  // [head_dim]
  float* out;      // [head_dim]
  std::size_t query;
  std::size_t position;
  std::size_t kv_head;
};

// What the rows of a tile see between them, as positions: sinks, then those from `first` to `last`.
struct Span {
  std::size_t sinks;
  std::size_t first;
  std::size_t last;

  std::size_t FirstBlock() const { return sinks > 0 ? 0 : WindowBlock(); }
  std::size_t NextBlock(std::size_t base) const {
    const std::size_t next = base + kSoftmaxBlock;
    return next < sinks ? next : std::max(next, WindowBlock());
  }
  std::size_t WindowBlock() const { return first / kSoftmaxBlock * kSoftmaxBlock; }
};

// Tiles [begin, end) of a softmax block.
struct TileRun {
  std::size_t begin;
  std::size_t end;
};
// The tiles of the block at `base` that hold positions of the span: up to two runs, others empty.
struct TileRuns {
  TileRun run[2];
  bool Has(std::size_t tile) const {
    return (tile >= run[0].begin && tile < run[0].end) ||
           (tile >= run[1].begin && tile < run[1].end);
  }
};
HWY_INLINE TileRuns TilesOf(const Span& span, std::size_t base) {
  const auto tiles_to = [base](std::size_t position) {  // Tiles that begin before it.
    return position <= base ? 0 : std::min(kTiles, (position - base + kLanes - 1) / kLanes);
  };
  const std::size_t end = tiles_to(span.last + 1);
  const std::size_t begin = span.first <= base ? 0 : std::min(end, (span.first - base) / kLanes);
  const std::size_t sinks = tiles_to(span.sinks);
  if (sinks >= begin) return {{{0, std::max(sinks, end)}, {0, 0}}};
  return {{{0, sinks}, {begin, end}}};
}

// Asks for the beginning of a tile. Within it the processor sees the next lines coming; where the
// next tile lies only the block table knows.
HWY_INLINE void PrefetchTile(const std::byte* tile, std::size_t bytes) {
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kLines = 4;
  for (std::size_t i = 0; i < std::min(bytes, kLines * kLineBytes); i += kLineBytes) {
    hwy::Prefetch(tile + i);
  }
}

// The tiles of one softmax block that the rows read.
template <std::size_t kStreams>
struct BlockPlaces {
  TileRuns runs;
  BlockTiles<kStreams> keys;
  BlockTiles<kStreams> values;
};

// kRows rows, positions ascending: of one kv head (kStreams = 1), or of one query and a kv head
// each (kStreams = kRows): chains and reads of several heads go on side by side, where one head's
// would wait for each other. Where keys are rounded by channel, all rows are of one group.
template <std::size_t kRows, std::size_t kStreams>
class RowTile {
  static_assert(kStreams == 1 || kStreams == kRows);

 public:
  RowTile(const AttentionArgs& args, const Row* rows)
      : args_(args), kv_(args.kv), head_dim_(args.kv.head_dim), rows_(rows) {
    tiles_per_block_ = kv_.block_tokens / kLanes;
    k_bytes_ = KTileBytes(kv_.k_type, head_dim_);
    v_bytes_ = VTileBytes(kv_.v_type, head_dim_);
    const std::size_t last = rows[kRows - 1].position;
    span_ = {VisibleSinks(last, args.sinks), FirstVisible(rows[0].position, args.window), last};
    const std::size_t padded = (head_dim_ + 15) / 16 * 16;
    KV_UNROLL
    for (std::size_t i = 0; i < kRows; ++i) {
      plain_.q[i] = rows[i].q;
      plain_.sum[i] = kv_.k_type == KvType::kInt4 ? QuerySum(rows[i].q, head_dim_) : 0.0f;
      for (float(&row)[kMaxHeadDim] : sums_[i]) std::fill_n(row, padded, 0.0f);
      block_[i] = {kNegInf, 0, sums_[i][0]};
      segment_[i] = {kNegInf, 0, sums_[i][1]};
      total_[i] = {kNegInf, 0, sums_[i][2]};
    }
  }

  void Run() {
    BlockPlaces<kStreams> places[2];  // Of this block and the next.
    std::size_t base = span_.FirstBlock();
    Find(base, places[0]);
    for (std::size_t parity = 0; base <= span_.last; parity ^= 1) {
      const std::size_t next = span_.NextBlock(base);
      Find(next, places[parity ^ 1]);
      AddBlock(base, places[parity], places[parity ^ 1]);
      const bool segment_ends = next / kSoftmaxSegment != base / kSoftmaxSegment;
      KV_UNROLL
      for (std::size_t i = 0; i < kRows; ++i) {
        if (!visible_[i].empty()) Merge(segment_[i], block_[i], head_dim_);
        if (segment_ends && segment_[i].m != kNegInf) {
          Merge(total_[i], segment_[i], head_dim_);
          segment_[i].m = kNegInf;
        }
      }
      base = next;
    }
    KV_UNROLL
    for (std::size_t i = 0; i < kRows; ++i) Finish(i);
  }

 private:
  // Looks up the tiles of the block at `base`.
  HWY_INLINE void Find(std::size_t base, BlockPlaces<kStreams>& places) {
    places.runs = TilesOf(span_, base);  // None beyond the last position.
    std::size_t block = base / kv_.block_tokens;
    std::size_t index = base % kv_.block_tokens / kLanes;
    for (std::size_t t = 0; t < kTiles; ++t) {
      if (places.runs.Has(t)) {
        const std::byte* bytes = kv_.blocks[block];
        for (std::size_t s = 0; s < kStreams; ++s) {
          const std::size_t tile = rows_[s].kv_head * tiles_per_block_ + index;
          places.keys.at[s][t] = bytes + kv_.k_offset + tile * k_bytes_;
          places.values.at[s][t] = bytes + kv_.v_offset + tile * v_bytes_;
        }
      }
      if (++index == tiles_per_block_) {
        index = 0;
        ++block;
      }
    }
  }

  HWY_INLINE static void Prefetch(const TileRuns& runs, const BlockTiles<kStreams>& tiles,
                                  std::size_t bytes) {
    for (std::size_t t = 0; t < kTiles; ++t) {
      if (!runs.Has(t)) continue;
      for (std::size_t s = 0; s < kStreams; ++s) PrefetchTile(tiles.at[s][t], bytes);
    }
  }

  // Sets block_ to what the rows see of the block, and meanwhile asks for the beginnings of the
  // next one's tiles.
  HWY_INLINE void AddBlock(std::size_t base, const BlockPlaces<kStreams>& places,
                           const BlockPlaces<kStreams>& next) {
    Prefetch(next.runs, next.keys, k_bytes_);
    const BlockTiles<kStreams>& values = places.values;
    V16 scores[kRows][kTiles];
    for (const TileRun& run : places.runs.run) {
      if (run.begin < run.end) ScoreTiles(base, places.keys, run, scores);
    }
    if (args_.sink_turns.turns != nullptr && base < span_.sinks) ScoreTurnedSinks(base, scores);
    RowWeights weights[kRows];
    bool same = true;
    KV_UNROLL
    for (std::size_t i = 0; i < kRows; ++i) {
      visible_[i] = VisibleIn(base, rows_[i].position, args_.window, args_.sinks);
      same = same && visible_[i] == visible_[0];
      if (visible_[i].empty()) continue;
      BlockSoftmax(scores[i], visible_[i], block_[i], weights[i].w);
      ScaleWeights(kv_.v_type, values.of(i), visible_[i], head_dim_, weights[i]);
    }
    Prefetch(next.runs, next.values, v_bytes_);
    if (same) {
      BlockValues<kRows, kStreams>(kv_.v_type, weights, values, visible_[0], head_dim_, block_);
      return;
    }
    // Rows of one query see the same, so these are queries of one head.
    if constexpr (kStreams == 1) {
      for (std::size_t i = 0; i < kRows; ++i) {
        if (visible_[i].empty()) continue;
        BlockValues<1, 1>(kv_.v_type, weights + i, values, visible_[i], head_dim_, block_ + i);
      }
    }
  }

  template <typename Keys>
  HWY_INLINE void Score(const QueryRows<kRows>& queries, const BlockTiles<kStreams>& keys,
                        TileRun run, V16 (*scores)[kTiles]) {
    AllScores<Keys, kRows, kStreams>(queries, keys, run.begin, run.end, head_dim_, args_.scale,
                                     scores);
  }

  HWY_INLINE void ScoreTiles(std::size_t base, const BlockTiles<kStreams>& keys, TileRun run,
                             V16 (*scores)[kTiles]) {
    switch (kv_.k_type) {
      case KvType::kF32:
        return Score<KeysF32>(plain_, keys, run, scores);
      case KvType::kF16:
        return Score<KeysF16>(plain_, keys, run, scores);
      case KvType::kBf16:
        return Score<KeysBf16>(plain_, keys, run, scores);
      case KvType::kInt8:
        return Score<KeysInt8>(plain_, keys, run, scores);
      case KvType::kInt4:
        return Score<KeysInt4>(plain_, keys, run, scores);
      case KvType::kInt4Channel:
        return ScoreChannelTiles(base, keys, run, scores);
    }
  }

  // Group by group, and those of the queries' own group from the tail.
  void ScoreChannelTiles(std::size_t base, const BlockTiles<kStreams>& keys, TileRun run,
                         V16 (*scores)[kTiles]) {
    const std::size_t tail = rows_[0].position / kv_.group * kv_.group;
    HWY_ALIGN float scaled[kRows][kMaxHeadDim];
    QueryRows<kRows> queries;
    while (run.begin < run.end) {
      const std::size_t position = base + run.begin * kLanes;
      const std::size_t group_end = (position / kv_.group + 1) * kv_.group;
      const TileRun part = {run.begin, std::min(run.end, (group_end - base) / kLanes)};
      if (position >= tail) {
        BlockTiles<kStreams> tails;
        for (std::size_t s = 0; s < kStreams; ++s) {
          for (std::size_t t = part.begin; t < part.end; ++t) {
            tails.at[s][t] = TailTile(kv_, base + t * kLanes, rows_[s].kv_head);
          }
        }
        Score<KeysF32>(plain_, tails, part, scores);
      } else {
        for (std::size_t i = 0; i < kRows; ++i) {
          queries.q[i] = scaled[i];
          queries.sum[i] = ScaleQuery(rows_[i].q, ChannelScales(kv_, position, rows_[i].kv_head),
                                      head_dim_, scaled[i]);
        }
        Score<KeysInt4Channel>(queries, keys, part, scores);
      }
      run.begin = part.end;
    }
  }

  // Replaces the scores of sinks in the block by those of their turned keys, row by row: where a
  // sink seems to stand depends on the query.
  HWY_NOINLINE void ScoreTurnedSinks(std::size_t base, V16 (*scores)[kTiles]) {
    HWY_ALIGN float tile[kMaxHeadDim * kLanes];
    for (std::size_t t = 0; t < kTiles; ++t) {
      for (std::size_t i = 0; i < kRows; ++i) {
        const std::size_t first = base + t * kLanes;
        const std::size_t seen = VisibleSinks(rows_[i].position, args_.sinks);
        if (first >= seen) continue;
        const std::size_t count = std::min(kLanes, seen - first);
        const bool again = i > 0 && rows_[i].query == rows_[i - 1].query &&
                           rows_[i].kv_head == rows_[i - 1].kv_head;
        if (!again) TurnSinks(rows_[i], first, count, tile);
        const BlockTiles<1> sinks = {{{reinterpret_cast<const std::byte*>(tile)}}};
        const QueryRows<1> query = {{rows_[i].q}, {0}};
        V16 turned[1][kTiles];
        AllScores<KeysF32, 1, 1>(query, sinks, 0, 1, head_dim_, args_.scale, turned);
        scores[i][t] = FirstLanes16(turned[0][0], count, scores[i][t]);
      }
    }
  }

  // tile [head_dim][16] = the keys of sinks first … first + count − 1 as this row sees them.
  void TurnSinks(const Row& row, std::size_t first, std::size_t count, float* tile) {
    const SinkTurns& turns = args_.sink_turns;
    std::fill_n(tile, head_dim_ * kLanes, 0.0f);
    float key[kMaxHeadDim];
    for (std::size_t lane = 0; lane < count; ++lane) {
      LoadKey(kv_, first + lane, row.kv_head, row.position, key);
      Rope({.turn = turns.turns + row.query * turns.query_stride + (first + lane) * 2 * turns.pairs,
            .pairs = turns.pairs,
            .pairing = turns.pairing,
            .heads = 1,
            .head_stride = head_dim_,
            .x = key});
      if (turns.rotate) HadamardRotate(key, 1, head_dim_);
      for (std::size_t d = 0; d < head_dim_; ++d) tile[d * kLanes + lane] = key[d];
    }
  }

  HWY_INLINE void Finish(std::size_t i) {
    if (segment_[i].m != kNegInf) Merge(total_[i], segment_[i], head_dim_);
    const V16 l16 = Set16(total_[i].l);
    for (std::size_t d = 0; d < head_dim_; d += 16) {
      const V16 y = Div16(Load16(total_[i].o + d), l16);
      if (d + 16 <= head_dim_) {
        Store16(y, rows_[i].out + d);
      } else {
        StoreFirst16(y, rows_[i].out + d, head_dim_ - d);
      }
    }
  }

  const AttentionArgs& args_;
  const KvView& kv_;
  const std::size_t head_dim_;
  const Row* rows_;
  Span span_;
  std::size_t tiles_per_block_;
  std::size_t k_bytes_;
  std::size_t v_bytes_;
  QueryRows<kRows> plain_;
  Visible visible_[kRows];
  State total_[kRows], segment_[kRows], block_[kRows];
  HWY_ALIGN float sums_[kRows][3][kMaxHeadDim];  // block, segment, total sums of V
};

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
