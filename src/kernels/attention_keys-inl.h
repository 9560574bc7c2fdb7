// Scores of queries against key tiles of every type (R3, R6). Per-target include.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#if defined(KVASIR_KERNELS_ATTENTION_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVASIR_KERNELS_ATTENTION_KEYS_INL_H_
#undef KVASIR_KERNELS_ATTENTION_KEYS_INL_H_
#else
#define KVASIR_KERNELS_ATTENTION_KEYS_INL_H_
#endif

#include "kernels/attention_softmax-inl.h"
#include "kernels/kv_address.h"
#include "kernels/kv_numbers-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// Where the tiles of one softmax block lie, for kStreams kv heads: one that all rows share, or one
// for each row.
template <std::size_t kStreams>
struct BlockTiles {
  const std::byte* at[kStreams][kTiles];
  const std::byte* const* of(std::size_t row) const { return at[kStreams == 1 ? 0 : row]; }
};

// A query as the chains of a score take it, and what is added beside them: the lane sum of q (int4)
// or of q · minimum (int4 per channel).
template <std::size_t kRows>
struct QueryRows {
  const float* q[kRows];  // [head_dim]
  float sum[kRows];
};

// Keys of one type: kChannels channels of a tile at once, the last ones (where head_dim is no
// multiple of kChannels) padded with anything; and a score from a chain.
struct KeysF32 {
  static constexpr std::size_t kChannels = 1;
  HWY_INLINE static void Load(const std::byte* tile, std::size_t d, V16* k) {
    k[0] = Load16(reinterpret_cast<const float*>(tile) + d * kLanes);
  }
  HWY_INLINE static V16 Score(const V16& chain, const std::byte*, std::size_t, float) {
    return chain;
  }
};
struct KeysF16 : KeysF32 {
  HWY_INLINE static void Load(const std::byte* tile, std::size_t d, V16* k) {
    k[0] = LoadF16(reinterpret_cast<const std::uint16_t*>(tile) + d * kLanes);
  }
};
struct KeysBf16 : KeysF32 {
  HWY_INLINE static void Load(const std::byte* tile, std::size_t d, V16* k) {
    k[0] = LoadBf16(reinterpret_cast<const std::uint16_t*>(tile) + d * kLanes);
  }
};
struct KeysInt8 {
  static constexpr std::size_t kChannels = 1;
  HWY_INLINE static void Load(const std::byte* tile, std::size_t d, V16* k) {
    k[0] = LoadInt8(reinterpret_cast<const std::int8_t*>(tile) + d * kLanes);
  }
  HWY_INLINE static V16 Score(const V16& chain, const std::byte* tile, std::size_t head_dim,
                              float) {
    return Mul16(chain, LoadBf16(TileScales(tile, KvType::kInt8, head_dim)));
  }
};
struct KeysInt4 {
  static constexpr std::size_t kChannels = 2;
  HWY_INLINE static void Load(const std::byte* tile, std::size_t d, V16* k) {
    LoadNibbles(reinterpret_cast<const std::uint8_t*>(tile) + d / 2 * kLanes, k[0], k[1]);
  }
  HWY_INLINE static V16 Score(const V16& chain, const std::byte* tile, std::size_t head_dim,
                              float sum) {
    const std::uint16_t* scales = TileScales(tile, KvType::kInt4, head_dim);
    return Fma16(LoadBf16(scales), chain, Mul16(LoadBf16(scales + kLanes), Set16(sum)));
  }
};
struct KeysInt4Channel : KeysInt4 {
  HWY_INLINE static V16 Score(const V16& chain, const std::byte*, std::size_t, float sum) {
    return Add16(chain, Set16(sum));
  }
};

// acc += q[d + c] · k for the first `channels` (<= kChannels) channels from d on.
template <typename Keys, std::size_t kQueries, std::size_t kCount, std::size_t kStreams>
HWY_INLINE void AddChannels(const QueryRows<kQueries>& rows, const BlockTiles<kStreams>& tiles,
                            std::size_t first, std::size_t d, std::size_t channels,
                            V16 (&acc)[kQueries][kCount]) {
  constexpr std::size_t kRowsOfStream = kStreams == 1 ? kQueries : 1;
  KV_UNROLL
  for (std::size_t s = 0; s < kStreams; ++s) {
    V16 k[kCount][Keys::kChannels];
    KV_UNROLL
    for (std::size_t t = 0; t < kCount; ++t) Keys::Load(tiles.at[s][first + t], d, k[t]);
    KV_UNROLL
    for (std::size_t c = 0; c < Keys::kChannels; ++c) {
      if (c >= channels) continue;
      KV_UNROLL
      for (std::size_t i = s; i < s + kRowsOfStream; ++i) {
        const V16 x = Set16(rows.q[i][d + c]);
        KV_UNROLL
        for (std::size_t t = 0; t < kCount; ++t) acc[i][t] = Fma16(x, k[t][c], acc[i][t]);
      }
    }
  }
}

// Scores of kQueries queries against kCount tiles: chains over head_dim, lanes = positions.
template <typename Keys, std::size_t kQueries, std::size_t kCount, std::size_t kStreams>
HWY_INLINE void Scores(const QueryRows<kQueries>& rows, const BlockTiles<kStreams>& tiles,
                       std::size_t first, std::size_t head_dim, float scale,
                       V16 (*scores)[kTiles]) {
  V16 acc[kQueries][kCount];
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    KV_UNROLL
    for (std::size_t t = 0; t < kCount; ++t) acc[i][t] = Zero16();
  }
  constexpr std::size_t kChannels = Keys::kChannels;
  const std::size_t whole = head_dim / kChannels * kChannels;
  for (std::size_t d = 0; d < whole; d += kChannels) {
    AddChannels<Keys>(rows, tiles, first, d, kChannels, acc);
  }
  if (whole < head_dim) AddChannels<Keys>(rows, tiles, first, whole, head_dim - whole, acc);
  const V16 scale16 = Set16(scale);
  KV_UNROLL
  for (std::size_t i = 0; i < kQueries; ++i) {
    const std::byte* const* its = tiles.of(i);
    KV_UNROLL
    for (std::size_t t = 0; t < kCount; ++t) {
      const V16 score = Keys::Score(acc[i][t], its[first + t], head_dim, rows.sum[i]);
      scores[i][first + t] = Mul16(score, scale16);
    }
  }
}

// Tiles side by side: as many chains as hide the latency and fit the registers.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kPairTiles = 4;
#else
constexpr std::size_t kPairTiles = 1;
#endif

// Of tiles first … end − 1.
template <typename Keys, std::size_t kQueries, std::size_t kStreams>
HWY_NOINLINE void AllScores(const QueryRows<kQueries>& rows, const BlockTiles<kStreams>& tiles,
                            std::size_t first, std::size_t end, std::size_t head_dim, float scale,
                            V16 (*scores)[kTiles]) {
  std::size_t t = first;
  constexpr std::size_t kCount = kQueries == 1 ? (kPairTiles > 2 ? 4 : 2) : kPairTiles;
  for (; t + kCount <= end; t += kCount) {
    Scores<Keys, kQueries, kCount>(rows, tiles, t, head_dim, scale, scores);
  }
  for (; t < end; ++t) {
    Scores<Keys, kQueries, 1>(rows, tiles, t, head_dim, scale, scores);
  }
}

// Lane sum (R2) of x [count].
HWY_INLINE float QuerySum(const float* x, std::size_t count) {
  V16 sum = Zero16();
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) sum = Add16(sum, Load16(x + i));
  if (i < count) sum = Add16(sum, LoadFirst16(x + i, count - i));
  return Fold16(sum);
}

// scaled [head_dim padded to 16] = q · scale of each channel; returns the lane sum of
// fma(q, minimum).
HWY_INLINE float ScaleQuery(const float* q, const std::uint16_t* scales, std::size_t head_dim,
                            float* scaled) {
  V16 sum = Zero16();
  const std::uint16_t* minima = scales + head_dim;
  std::size_t d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    const V16 x = Load16(q + d);
    Store16(Mul16(x, LoadBf16(scales + d)), scaled + d);
    sum = Fma16(x, LoadBf16(minima + d), sum);
  }
  if (d < head_dim) {
    std::uint16_t last[2][16] = {};
    std::copy_n(scales + d, head_dim - d, last[0]);
    std::copy_n(minima + d, head_dim - d, last[1]);
    const V16 x = LoadFirst16(q + d, head_dim - d);
    Store16(Mul16(x, LoadBf16(last[0])), scaled + d);
    sum = Fma16(x, LoadBf16(last[1]), sum);
  }
  return Fold16(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
