#include "kernels/block_matmul.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_matmul.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

constexpr std::size_t kScaleBytes = 2 * kPanelOutputs;

// The sixteen scales of a block, widened exactly.
HWY_INLINE V16 LoadScales(const std::byte* block) {
  V16 r;
  const hn::Rebind<hwy::float16_t, DF> half;
  const auto* scales = reinterpret_cast<const hwy::float16_t*>(block);
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    r.part[i] = hn::PromoteTo(DF(), hn::LoadU(half, scales + i * kWidth));
  }
  return r;
}

// One step of Q8_0 or two of Q4_0 (packed_matrix.h), sixteen outputs each, from sixteen bytes.
template <std::size_t kBits>
constexpr std::size_t kStepsPerLine = 8 / kBits;

struct Line {
  hn::Vec<DI> part[kParts];
};

HWY_INLINE Line LoadLine(const std::byte* p) {
  Line r;
  const hn::Rebind<std::int8_t, DI> bytes;
  const auto* from = reinterpret_cast<const std::int8_t*>(p);
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    r.part[i] = hn::PromoteTo(DI(), hn::LoadU(bytes, from + i * kWidth));
  }
  return r;
}

// The numbers of a line's step as f32.
template <std::size_t kBits, std::size_t kStep>
HWY_INLINE V16 Numbers(const Line& line) {
  V16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    auto q = line.part[i];
    if constexpr (kBits == 4 && kStep == 0) {
      q = hn::Sub(hn::And(q, hn::Set(DI(), 15)), hn::Set(DI(), 8));
    }
    if constexpr (kBits == 4 && kStep == 1) q = hn::ShiftRight<4>(q);
    r.part[i] = hn::ConvertTo(DF(), q);
  }
  return r;
}

// The chains of a register tile over one block.
template <std::size_t kRows, std::size_t kPanels>
struct Chains {
  V16 sum[kRows][kPanels];

  HWY_INLINE void Clear() {
    KV_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) sum[r][p] = Zero16();
    }
  }
  // x: a step's first input; from row to row `stride` further.
  HWY_INLINE void Step(const float* x, std::size_t stride, const V16 (&q)[kPanels]) {
    KV_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const V16 broadcast = Set16(x[r * stride]);
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) sum[r][p] = Fma16(broadcast, q[p], sum[r][p]);
    }
  }
};

// Of the two blocks of a pair of panels.
constexpr std::size_t PairBlockBytes(std::size_t bits) {
  return kPairPanels * (kScaleBytes + kBlockSteps * bits / 8 * kPanelOutputs);
}

// How far ahead of their use bytes are asked for: the hardware sees no stream in these reads.
constexpr std::size_t kPairsAhead = 4;

// Weights as they lie in the matrix: each number is widened where it is used. More than one panel
// are whole pairs.
template <std::size_t kBits>
struct InBytes {
  const std::byte* blocks;  // Of the first panel.
  std::size_t block_bytes;
  std::size_t pair_bytes;  // From pair to pair of panels.

  HWY_INLINE const std::byte* At(std::size_t b, std::size_t p) const {
    return blocks + p / kPairPanels * pair_bytes +
           (b * kPairPanels + p % kPairPanels) * block_bytes;
  }
  HWY_INLINE V16 Scale(std::size_t b, std::size_t p) const { return LoadScales(At(b, p)); }
  template <std::size_t kRows, std::size_t kPanels>
  HWY_INLINE void Block(std::size_t b, const float* x, std::size_t stride,
                        Chains<kRows, kPanels>& chains) const {
    // Whole cache lines of whole pairs: a line left out is a wait for memory in every block.
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; p += kPairPanels) {
      const std::byte* ahead = At(b + kPairsAhead, p);
      for (std::size_t i = 0; i < PairBlockBytes(kBits); i += 64) hwy::Prefetch(ahead + i);
    }
    for (std::size_t k = 0; k < kBlockSteps; k += 8) {
      const std::size_t at = kScaleBytes + k / kStepsPerLine<kBits> * kPanelOutputs;
      const std::byte* from[kPanels];
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) from[p] = At(b, p) + at;
      KV_UNROLL
      for (std::size_t i = 0; i < 8; i += kStepsPerLine<kBits>) {
        Line lines[kPanels];
        V16 q[kPanels];
        KV_UNROLL
        for (std::size_t p = 0; p < kPanels; ++p) {
          lines[p] = LoadLine(from[p] + i / kStepsPerLine<kBits> * kPanelOutputs);
          q[p] = Numbers<kBits, 0>(lines[p]);
        }
        chains.Step(x + k + i, stride, q);
        if constexpr (kStepsPerLine<kBits> == 2) {
          KV_UNROLL
          for (std::size_t p = 0; p < kPanels; ++p) q[p] = Numbers<kBits, 1>(lines[p]);
          chains.Step(x + k + i + 1, stride, q);
        }
      }
    }
  }
};

// Blocks of a few panels along k, their numbers as f32: made once for many rows.
struct InFloats {
  const float* numbers;  // [panels][blocks · 32][16]
  const float* scales;   // [panels][blocks][16]
  std::size_t blocks;

  HWY_INLINE V16 Scale(std::size_t b, std::size_t p) const {
    return Load16(scales + (p * blocks + b) * 16);
  }
  template <std::size_t kRows, std::size_t kPanels>
  HWY_INLINE void Block(std::size_t b, const float* x, std::size_t stride,
                        Chains<kRows, kPanels>& chains) const {
    const float* from = numbers + b * kBlockSteps * 16;
    for (std::size_t k = 0; k < kBlockSteps; ++k) {
      V16 q[kPanels];
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) {
        q[p] = Load16(from + p * blocks * kBlockSteps * 16);
      }
      chains.Step(x + k, stride, q);
      from += 16;
    }
  }
};

// acc [kRows][kPanels · 16], row stride acc_stride, carried on over the blocks [begin, end). x: the
// tile's first input at block `begin`.
template <std::size_t kRows, std::size_t kPanels, typename Weights>
HWY_INLINE void Tile(const Weights& weights, base::IndexRange blocks, const float* x,
                     std::size_t x_stride, float* acc, std::size_t acc_stride) {
  for (std::size_t b = blocks.begin; b < blocks.end; ++b) {
    Chains<kRows, kPanels> chains;
    chains.Clear();
    weights.Block(b, x, x_stride, chains);
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      const V16 scale = weights.Scale(b, p);
      KV_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        float* to = acc + r * acc_stride + p * 16;
        Store16(Fma16(chains.sum[r][p], scale, Load16(to)), to);
      }
    }
    x += kBlockSteps;
  }
}

// Rows and panels of register tiles. Widening needs registers of its own, and enough chains to hide
// its latency.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kMaxRows = 12;
constexpr std::size_t kWidePanels = 2;
constexpr std::size_t PanelsFor(std::size_t rows) { return rows <= 4 ? 4 : 2; }
#else
constexpr std::size_t kMaxRows = 6;
constexpr std::size_t kWidePanels = 1;
constexpr std::size_t PanelsFor(std::size_t rows) { return rows <= 2 ? 2 : 1; }
#endif

// Adds bias and residual to one row of a panel, and stores what there is of it.
HWY_INLINE void Finish(const MatmulArgs& args, std::size_t row, std::size_t panel, V16 acc) {
  const std::size_t first = panel * 16;
  const std::size_t columns = args.w->n() - first;
  const std::size_t at = row * args.out_stride + first;
  if (columns >= 16) {
    if (args.bias) acc = Add16(acc, Load16(args.bias + first));
    if (args.residual) acc = Add16(Load16(args.residual + at), acc);
    Store16(acc, args.out + at);
    return;
  }
  if (args.bias) acc = Add16(acc, LoadFirst16(args.bias + first, columns));
  if (args.residual) acc = Add16(LoadFirst16(args.residual + at, columns), acc);
  StoreFirst16(acc, args.out + at, columns);
}

// A few rows (kRows) of the panels, straight from the bytes.
template <std::size_t kBits, std::size_t kRows>
HWY_NOINLINE void FewRows(const MatmulArgs& args, std::size_t row, base::IndexRange panels) {
  constexpr std::size_t kPanels = PanelsFor(kRows);
  const PackedMatrix& w = *args.w;
  const float* x = args.a + row * args.a_row_stride;
  const auto run = [&](auto count, std::size_t panel) {
    constexpr std::size_t kCount = decltype(count)::value;
    HWY_ALIGN float acc[kRows * kCount * 16] = {};
    const InBytes<kBits> weights = {w.block(panel, 0), w.block_bytes(),
                                    kPairPanels * w.block_bytes() * w.block_count()};
    Tile<kRows, kCount>(weights, {0, w.block_count()}, x, args.a_row_stride, acc, kCount * 16);
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t p = 0; p < kCount; ++p) {
        Finish(args, row + r, panel + p, Load16(acc + (r * kCount + p) * 16));
      }
    }
  };
  std::size_t panel = panels.begin;
  const auto single = [&] { run(std::integral_constant<std::size_t, 1>(), panel++); };
  if (kPanels > 1 && panel % kPairPanels != 0 && panel < panels.end) single();
  for (; panel + kPanels <= panels.end; panel += kPanels) {
    run(std::integral_constant<std::size_t, kPanels>(), panel);
  }
  while (panel < panels.end) single();
}

template <std::size_t kBits, std::size_t kRows = kMaxRows>
HWY_INLINE void FewRowsOf(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  if (rows.size() == kRows) {
    FewRows<kBits, kRows>(args, rows.begin, panels);
  } else if constexpr (kRows > 1) {
    FewRowsOf<kBits, kRows - 1>(args, rows, panels);
  }
}

// Many rows: blocks of kWidePanels panels are widened into a buffer that stays in the first-level
// cache while all rows pass over it. The sums of kGroup panels stay in the second-level cache, so
// that a stretch of the rows' inputs is read from there by all of them.
constexpr std::size_t kStretch = 8 / kWidePanels;  // Blocks along k.
constexpr std::size_t kGroup = 4;                  // Panels.
constexpr std::size_t kManyRows = 192;
static_assert(kGroup % kWidePanels == 0);

template <std::size_t kBits>
HWY_INLINE void Widen(const PackedMatrix& w, std::size_t panel, base::IndexRange blocks,
                      float* numbers, float* scales) {
  for (std::size_t b = blocks.begin; b < blocks.end; ++b) {
    const std::byte* from = w.block(panel, b);
    Store16(LoadScales(from), scales);
    scales += 16;
    from += kScaleBytes;
    for (std::size_t k = 0; k < kBlockSteps; k += kStepsPerLine<kBits>) {
      const Line line = LoadLine(from);
      Store16(Numbers<kBits, 0>(line), numbers);
      if constexpr (kStepsPerLine<kBits> == 2) Store16(Numbers<kBits, 1>(line), numbers + 16);
      from += kPanelOutputs;
      numbers += kStepsPerLine<kBits> * 16;
    }
  }
}

template <std::size_t kPanels, std::size_t kRows = kMaxRows>
HWY_INLINE void WideTileOf(std::size_t rows, const InFloats& weights, const float* x,
                           std::size_t x_stride, float* acc) {
  if (rows == kRows) {
    Tile<kRows, kPanels>(weights, {0, weights.blocks}, x, x_stride, acc, kGroup * 16);
  } else if constexpr (kRows > 1) {
    WideTileOf<kPanels, kRows - 1>(rows, weights, x, x_stride, acc);
  }
}

template <std::size_t kPanels>
HWY_NOINLINE void WideTiles(std::size_t rows, const InFloats& weights, const float* x,
                            std::size_t x_stride, float* acc) {
  for (std::size_t r = 0; r < rows; r += kMaxRows) {
    WideTileOf<kPanels>(std::min(kMaxRows, rows - r), weights, x + r * x_stride, x_stride,
                        acc + r * kGroup * 16);
  }
}

template <std::size_t kBits>
HWY_NOINLINE void ManyRows(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  const PackedMatrix& w = *args.w;
  HWY_ALIGN float acc[kManyRows * kGroup * 16];
  HWY_ALIGN float numbers[kWidePanels * kStretch * kBlockSteps * 16];
  HWY_ALIGN float scales[kWidePanels * kStretch * 16];
  std::fill_n(acc, rows.size() * kGroup * 16, 0.0f);
  for (std::size_t begin = 0; begin < w.block_count(); begin += kStretch) {
    const base::IndexRange blocks = {begin, std::min(begin + kStretch, w.block_count())};
    const float* x = args.a + rows.begin * args.a_row_stride + begin * kBlockSteps;
    const InFloats weights = {numbers, scales, blocks.size()};
    for (std::size_t p = panels.begin; p < panels.end; p += kWidePanels) {
      const std::size_t count = std::min(kWidePanels, panels.end - p);
      for (std::size_t i = 0; i < count; ++i) {
        Widen<kBits>(w, p + i, blocks, numbers + i * blocks.size() * kBlockSteps * 16,
                     scales + i * blocks.size() * 16);
      }
      float* sums = acc + (p - panels.begin) * 16;
      if (count == kWidePanels) {
        WideTiles<kWidePanels>(rows.size(), weights, x, args.a_row_stride, sums);
      } else {
        WideTiles<1>(rows.size(), weights, x, args.a_row_stride, sums);
      }
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t p = panels.begin; p < panels.end; ++p) {
      Finish(args, rows.begin + r, p, Load16(acc + (r * kGroup + p - panels.begin) * 16));
    }
  }
}

template <std::size_t kBits>
void BlockMatmulOf(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  if (rows.size() <= kMaxRows) return FewRowsOf<kBits>(args, rows, panels);
  for (std::size_t r = rows.begin; r < rows.end; r += kManyRows) {
    for (std::size_t p = panels.begin; p < panels.end; p += kGroup) {
      ManyRows<kBits>(args, {r, std::min(r + kManyRows, rows.end)},
                      {p, std::min(p + kGroup, panels.end)});
    }
  }
}

void BlockMatmulImpl(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  if (args.w->dtype() == tensor::DType::kQ8_0) {
    BlockMatmulOf<8>(args, rows, panels);
  } else {
    BlockMatmulOf<4>(args, rows, panels);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(BlockMatmulImpl);

void BlockMatmul(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  KV_CHECK(args.a_k_stride == 1 && !args.accumulate && !args.padded_out);
  HWY_DYNAMIC_DISPATCH(BlockMatmulImpl)(args, rows, panels);
}

void ReferenceBlockMatmul(const MatmulArgs& args, std::size_t rows) {
  const PackedMatrix& w = *args.w;
  for (std::size_t m = 0; m < rows; ++m) {
    const float* x = args.a + m * args.a_row_stride;
    for (std::size_t n = 0; n < w.n(); ++n) {
      float acc = 0.0f;
      for (std::size_t b = 0; b < w.block_count(); ++b) {
        float partial = 0.0f;
        for (std::size_t k = b * kBlockSteps; k < (b + 1) * kBlockSteps; ++k) {
          partial = std::fma(x[k], static_cast<float>(RoundedNumber(w, n, k)), partial);
        }
        acc = std::fma(partial, RoundedScale(w, n, b), acc);
      }
      if (args.bias) acc = acc + args.bias[n];
      if (args.residual) acc = args.residual[m * args.out_stride + n] + acc;
      args.out[m * args.out_stride + n] = acc;
    }
  }
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
