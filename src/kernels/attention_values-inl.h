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

// The weights of a row over a block's 64 positions, times the values' scales where they have any,
// and the sum of weight · minimum.
struct RowWeights {
  float w[kSoftmaxBlock];
  float minimum;
};

// Values of one type: kColumns vectors of a row from `column` on. A vector may read beyond the row,
// but within its tile.
struct ValuesF32 {
  static constexpr KvType kType = KvType::kF32;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim * sizeof(float); }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* row, std::size_t column, V16* v) {
    const float* p = reinterpret_cast<const float*>(row) + column;
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) v[c] = Load16(p + c * 16);
  }
  HWY_INLINE static V16 LoadLast(const std::byte* row, std::size_t column, std::size_t count) {
    return LoadFirst16(reinterpret_cast<const float*>(row) + column, count);
  }
};
// Two bytes a number.
template <KvType kHalfType>
struct ValuesHalf {
  static constexpr KvType kType = kHalfType;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim * 2; }
  HWY_INLINE static V16 LoadOne(const std::uint16_t* p) {
    if constexpr (kType == KvType::kF16) {
      return LoadF16(p);
    } else {
      return LoadBf16(p);
    }
  }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* row, std::size_t column, V16* v) {
    const std::uint16_t* p = reinterpret_cast<const std::uint16_t*>(row) + column;
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) v[c] = LoadOne(p + c * 16);
  }
  HWY_INLINE static V16 LoadLast(const std::byte* row, std::size_t column, std::size_t count) {
    std::uint16_t last[16] = {};
    std::copy_n(reinterpret_cast<const std::uint16_t*>(row) + column, count, last);
    return LoadOne(last);
  }
};
struct ValuesInt8 {
  static constexpr KvType kType = KvType::kInt8;
  static std::size_t RowBytes(std::size_t head_dim) { return head_dim; }
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* row, std::size_t column, V16* v) {
    const std::int8_t* p = reinterpret_cast<const std::int8_t*>(row) + column;
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) v[c] = LoadInt8(p + c * 16);
  }
  HWY_INLINE static V16 LoadLast(const std::byte* row, std::size_t column, std::size_t) {
    V16 v;
    Load<1>(row, column, &v);  // The scales follow the last row.
    return v;
  }
};
struct ValuesInt4 {
  static constexpr KvType kType = KvType::kInt4;
  static std::size_t RowBytes(std::size_t head_dim) { return (head_dim + 1) / 2; }
  // The low and the high halves of a run that starts at `column`, a multiple of 32.
  template <std::size_t kColumns>
  HWY_INLINE static void Load(const std::byte* row, std::size_t column, V16* v) {
    static_assert(kColumns == 2);
    LoadNibbles(reinterpret_cast<const std::uint8_t*>(row) + column / 2, v[0], v[1]);
  }
};

// o[column + c · second …] = chain over the visible positions of weight · value, for kQueries rows
// from first_row on that see the same.
template <typename Values, std::size_t kQueries, std::size_t kColumns, std::size_t kStreams>
HWY_INLINE void WeighValues(const RowWeights* weights, const BlockTiles<kStreams>& tiles,
                            std::size_t first_row, Visible visible, std::size_t head_dim,
                            std::size_t column, std::size_t second, const State* states) {
  constexpr std::size_t kLoads = kStreams == 1 ? 1 : kQueries;
  V16 acc[kQueries][kColumns];
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Zero16();
  }
  const std::size_t row_bytes = Values::RowBytes(head_dim);
  const std::size_t range[2][2] = {{0, visible.sinks}, {visible.begin, visible.end}};
  for (std::size_t part = visible.sinks > 0 ? 0 : 1; part < 2; ++part) {
    for (std::size_t j = range[part][0]; j < range[part][1]; ++j) {
      V16 v[kLoads][kColumns];
      KV_UNROLL
      for (std::size_t s = 0; s < kLoads; ++s) {
        const std::byte* tile = tiles.of(first_row + s)[j / kLanes];
        Values::template Load<kColumns>(tile + j % kLanes * row_bytes, column, v[s]);
      }
      KV_UNROLL
      for (std::size_t i = 0; i < kQueries; ++i) {
        const V16 w = Set16(weights[first_row + i].w[j]);
        const std::size_t s = kStreams == 1 ? 0 : i;
        KV_UNROLL
        for (std::size_t c = 0; c < kColumns; ++c) acc[i][c] = Fma16(w, v[s][c], acc[i][c]);
      }
    }
  }
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      if constexpr (Values::kType == KvType::kInt4) {
        acc[i][c] = Add16(acc[i][c], Set16(weights[first_row + i].minimum));
      }
      Store16(acc[i][c], states[first_row + i].o + column + c * second);
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
    acc = Fma16(Set16(weights.w[j]), Values::LoadLast(row, column, head_dim - column), acc);
  }
  Store16(acc, state.o + column);  // Padded to 16.
}

// Rows side by side: with a value stream each, what has to be unpacked leaves registers for two.
template <typename Values, std::size_t kQueries, std::size_t kStreams>
constexpr std::size_t kRowsAtOnce =
    kStreams == 1 || Values::kType == KvType::kF32 || kParts == 1 ? kQueries : 2;

// kQueries rows from first_row on.
template <typename Values, std::size_t kQueries, std::size_t kStreams>
HWY_NOINLINE void AllValues(const RowWeights* weights, const BlockTiles<kStreams>& tiles,
                            std::size_t first_row, Visible visible, std::size_t head_dim,
                            const State* states) {
  constexpr std::size_t kRun = 32;
  constexpr std::size_t kAtOnce = std::min(kQueries, kRowsAtOnce<Values, kQueries, kStreams>);
  for (std::size_t row = first_row; row < first_row + kQueries; row += kAtOnce) {
    std::size_t column = 0;
    for (; column + kRun <= head_dim; column += kRun) {
      WeighValues<Values, kAtOnce, 2, kStreams>(weights, tiles, row, visible, head_dim, column, 16,
                                                states);
    }
    if constexpr (Values::kType == KvType::kInt4) {
      if (column < head_dim) {
        WeighValues<Values, kAtOnce, 2, kStreams>(weights, tiles, row, visible, head_dim, column,
                                                  (head_dim - column + 1) / 2, states);
      }
    } else {
      for (; column + 16 <= head_dim; column += 16) {
        WeighValues<Values, kAtOnce, 1, kStreams>(weights, tiles, row, visible, head_dim, column,
                                                  16, states);
      }
      if (column == head_dim) continue;
      for (std::size_t i = row; i < row + kAtOnce; ++i) {
        WeighValuesTail<Values>(weights[i], tiles.of(i), visible, head_dim, column, states[i]);
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
                            const BlockTiles<kStreams>& tiles, std::size_t first_row,
                            Visible visible, std::size_t head_dim, const State* states) {
  const auto with = [&](auto values) {
    AllValues<decltype(values), kQueries, kStreams>(weights, tiles, first_row, visible, head_dim,
                                                    states);
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
