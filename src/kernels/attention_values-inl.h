// Weighted sums of value rows of every type (R3, R6). Per-target include.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_ATTENTION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_ATTENTION_VALUES_INL_H_
#undef KVASIR_KERNELS_ATTENTION_VALUES_INL_H_
#else
#define KVASIR_KERNELS_ATTENTION_VALUES_INL_H_
#endif

#include "kernels/attention_keys-inl.h"
#include "kernels/attention_softmax-inl.h"
#include "kernels/kv_address.h"
#include "kernels/kv_numbers-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// The rows of the tiles of one softmax block, of a stream each.
using TileRows = const std::byte* const (*)[kTiles];

// Values of one type: kColumns vectors from a place in a row on, which is Offset(column) bytes from
// its start. A vector may read beyond the row, but within its tile.
struct ValuesF32 {
  static constexpr KvType kType = KvType::kF32;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim * sizeof(float); }
  static std::size_t Offset(std::size_t column) { return column * sizeof(float); }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* place, V16* v) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      v[c] = Load16(reinterpret_cast<const float*>(place) + c * 16);
    }
  }
  // The last `count` numbers of a row.
  HWY_INLINE static V16 LoadLast(const std::byte* place, std::size_t count) {
    return LoadFirst16(reinterpret_cast<const float*>(place), count);
  }
};
// Two bytes a number.
template <KvType kHalfType>
struct ValuesHalf {
  static constexpr KvType kType = kHalfType;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim * 2; }
  static std::size_t Offset(std::size_t column) { return column * 2; }
  HWY_INLINE static V16 LoadOne(const std::uint16_t* p) {
    if constexpr (kType == KvType::kF16) {
      return LoadF16(p);
    } else {
      return LoadBf16(p);
    }
  }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* place, V16* v) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      v[c] = LoadOne(reinterpret_cast<const std::uint16_t*>(place) + c * 16);
    }
  }
  HWY_INLINE static V16 LoadLast(const std::byte* place, std::size_t count) {
    std::uint16_t last[16] = {};
    std::copy_n(reinterpret_cast<const std::uint16_t*>(place), count, last);
    return LoadOne(last);
  }
};
struct ValuesInt8 {
  static constexpr KvType kType = KvType::kInt8;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim; }
  static std::size_t Offset(std::size_t column) { return column; }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* place, V16* v) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      v[c] = LoadInt8(reinterpret_cast<const std::int8_t*>(place) + c * 16);
    }
  }
  HWY_INLINE static V16 LoadLast(const std::byte* place, std::size_t) {
    V16 v;
    Load<1>(place, &v);  // The scales follow the last row.
    return v;
  }
};
struct ValuesInt4 {
  static constexpr KvType kType = KvType::kInt4;
  static std::size_t RowBytes(std::size_t head_dim) { return (head_dim + 1) / 2; }
  static std::size_t Offset(std::size_t column) { return column / 2; }
  // The low and the high halves of a run, where it starts.
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* place, V16* v) {
    static_assert(kColumns == 2);
    LoadNibbles(reinterpret_cast<const std::uint8_t*>(place), v[0], v[1]);
  }
};

// What a row's sums over the values of a block are made of.
struct RowWeights {
  alignas(64) float w[kSoftmaxBlock];  // Times the values' scales, where they have any.
  float minimum;                       // Sum of weight · minimum.
};

// o[column + c · second …] = chain over the visible positions of weight · value, for kQueries rows
// that see the same.
template <typename Values, std::size_t kQueries, std::size_t kColumns, std::size_t kStreams>
HWY_INLINE void WeighValues(const RowWeights* weights, TileRows tiles, Visible visible,
                            std::size_t head_dim, std::size_t column, std::size_t second,
                            const State* states) {
  V16 acc[kQueries][kColumns];
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Zero16();
  }
  const std::size_t row_bytes = Values::RowBytes(head_dim);
  const std::size_t offset = Values::Offset(column);
  constexpr std::size_t kRowsOfStream = kStreams == 1 ? kQueries : 1;
  for (std::size_t j = visible.sinks > 0 ? 0 : visible.begin; j < visible.end;) {
    const std::size_t tile = j / kLanes;
    const std::size_t range_end = j < visible.sinks ? visible.sinks : visible.end;
    const std::size_t end = std::min(range_end, (tile + 1) * kLanes);
    const std::byte* row[kStreams];
    KV_UNROLL
    for (std::size_t s = 0; s < kStreams; ++s) {
      row[s] = tiles[s][tile] + j % kLanes * row_bytes + offset;
    }
    for (; j < end; ++j) {
      KV_UNROLL
      for (std::size_t s = 0; s < kStreams; ++s) {
        V16 v[kColumns];
        Values::template Load<kColumns>(row[s], v);
        row[s] += row_bytes;
        KV_UNROLL
        for (std::size_t i = s; i < s + kRowsOfStream; ++i) {
          const V16 w = Set16(weights[i].w[j]);
          KV_UNROLL
          for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Fma16(w, v[c], acc[i][c]);
        }
      }
    }
    if (j == visible.sinks) j = visible.begin;
  }
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      if constexpr (Values::kType == KvType::kInt4) {
        acc[i][c] = Add16(acc[i][c], Set16(weights[i].minimum));
      }
      Store16(acc[i][c], states[i].o + column + c * second);
    }
  }
}

// The last columns when head_dim is no multiple of 16, one row.
template <typename Values>
HWY_INLINE void WeighValuesTail(const RowWeights& weights, const std::byte* const* tiles,
                                Visible visible, std::size_t head_dim, std::size_t column,
                                const State& state) {
  V16 acc = Zero16();
  const std::size_t row_bytes = Values::RowBytes(head_dim);
  for (std::size_t j = 0; j < visible.end; ++j) {
    if (j == visible.sinks) j = visible.begin;
    const std::byte* row = tiles[j / kLanes] + j % kLanes * row_bytes;
    const V16 v = Values::LoadLast(row + Values::Offset(column), head_dim - column);
    acc = Fma16(Set16(weights.w[j]), v, acc);
  }
  Store16(acc, state.o + column);  // Padded to 16.
}

// Rows side by side: with a value stream each, what has to be unpacked leaves registers for two.
template <typename Values, std::size_t kQueries, std::size_t kStreams>
constexpr std::size_t kRowsAtOnce =
    kStreams == 1 || Values::kType == KvType::kF32 || kParts == 1 ? kQueries : 2;

template <typename Values, std::size_t kQueries, std::size_t kStreams>
HWY_NOINLINE void AllValues(const RowWeights* all_weights, const BlockTiles<kStreams>& all_tiles,
                            Visible visible, std::size_t head_dim, const State* all_states) {
  constexpr std::size_t kRun = 32;
  constexpr std::size_t kAtOnce = kRowsAtOnce<Values, kQueries, kStreams>;
  constexpr std::size_t kAtOnceStreams = kStreams == 1 ? 1 : kAtOnce;
  for (std::size_t first = 0; first < kQueries; first += kAtOnce) {
    const RowWeights* weights = all_weights + first;
    const State* states = all_states + first;
    const TileRows tiles = all_tiles.at + (kStreams == 1 ? 0 : first);
    std::size_t column = 0;
    for (; column + kRun <= head_dim; column += kRun) {
      WeighValues<Values, kAtOnce, 2, kAtOnceStreams>(weights, tiles, visible, head_dim, column, 16,
                                                      states);
    }
    if constexpr (Values::kType == KvType::kInt4) {
      if (column == head_dim) continue;
      WeighValues<Values, kAtOnce, 2, kAtOnceStreams>(weights, tiles, visible, head_dim, column,
                                                      (head_dim - column + 1) / 2, states);
    } else {
      for (; column + 16 <= head_dim; column += 16) {
        WeighValues<Values, kAtOnce, 1, kAtOnceStreams>(weights, tiles, visible, head_dim, column,
                                                        16, states);
      }
      if (column == head_dim) continue;
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        WeighValuesTail<Values>(weights[i], tiles[kStreams == 1 ? 0 : i], visible, head_dim, column,
                                states[i]);
      }
    }
  }
}

// Multiplies a row's weights by the scales of the values it sees, and sums weight · minimum (R2).
// Weights of positions in these tiles that it does not see are 0, and what lies there is not a
// number perhaps: a weight of 0 adds nothing.
HWY_INLINE void ScaleWeights(KvType type, const std::byte* const* tiles, Visible visible,
                             std::size_t head_dim, RowWeights& weights) {
  if (TileScalesBytes(type) == 0) return;
  V16 sum = Zero16();
  for (std::size_t t = 0; t < kTiles; ++t) {
    if (!visible.SeesTile(t)) continue;
    const std::uint16_t* scales = TileScales(tiles[t], type, head_dim);
    float* w = weights.w + t * kLanes;
    const V16 weight = Load16(w);
    Store16(Mul16(weight, LoadBf16(scales)), w);
    if (type != KvType::kInt4) continue;
    V16 minimum = LoadBf16(scales + kLanes);
    KV_UNROLL
    for (std::size_t i = 0; i < kParts; ++i) {
      const auto unseen = hn::Eq(weight.part[i], hn::Zero(DF()));
      minimum.part[i] = hn::IfThenZeroElse(unseen, minimum.part[i]);
    }
    sum = Fma16(weight, minimum, sum);
  }
  weights.minimum = Fold16(sum);
}

template <std::size_t kQueries, std::size_t kStreams>
HWY_INLINE void BlockValues(KvType type, const RowWeights* weights,
                            const BlockTiles<kStreams>& tiles, Visible visible,
                            std::size_t head_dim, const State* states) {
  const auto with = [&](auto values) {
    AllValues<decltype(values), kQueries, kStreams>(weights, tiles, visible, head_dim, states);
  };
  switch (type) {
    case KvType::kF32:
      return with(ValuesF32());
    case KvType::kF16:
      return with(ValuesHalf<KvType::kF16>());
    case KvType::kBf16:
      return with(ValuesHalf<KvType::kBf16>());
    case KvType::kInt8:
      return with(ValuesInt8());
    default:
      return with(ValuesInt4());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
