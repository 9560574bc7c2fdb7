#include "kernels/matmul.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/block_matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// Splitting k keeps what several tiles use in a cache. The partial sums go through `out` as f32,
// which is exact, so the chain is unbroken. A transposed input is read down its columns: there the
// panels of a tile belong into the first-level cache; else the second-level one will do.
template <bool kTransposed>
constexpr std::size_t kSplit = kTransposed ? 256 : 1024;

// Where a tile's panels begin.
struct Corner {
  const float* panel;  // first panel, first k of the chunk
  float* out;          // first row and column of the tile
  const float* bias;   // null unless this is the last chunk, like residual
  const float* residual;

  HWY_INLINE void Advance(std::size_t panels, std::size_t panel_stride) {
    panel += panels * panel_stride;
    out += panels * 16;
    if (bias) bias += panels * 16;
    if (residual) residual += panels * 16;
  }
};

// What the tiles of some rows have in common. Passed by reference: a copy would be read as one
// vector out of fields that were stored one by one a moment ago, which waits for all of them.
struct Chunk {
  const float* a;            // first row of the tile, first k of the chunk
  std::size_t a_stride;      // of the strided dimension
  std::size_t panel_stride;  // floats from panel to panel
  std::size_t k;             // steps in this chunk
  std::size_t out_stride;
  std::size_t residual_stride;
  bool load;   // start from out instead of 0
  bool fetch;  // The panels are not in a near cache yet.
};

// The first tile that uses panels is bound by how fast they arrive: each is asked for this many
// floats (16 cache lines) ahead of its use. More panels side by side are slower then: the processor
// follows fewer streams better (measured, one row: 4 streams with this reach what a plain read
// does, 12 without it 75 to 85 % of that).
constexpr std::size_t kFetchAhead = 256;
// So few rows use each panel once only.
constexpr std::size_t kFewRows = 4;

// One register tile: kRows × kPanels chains of 16 outputs.
template <std::size_t kRows, std::size_t kPanels, bool kTransposed, bool kFetch>
HWY_INLINE void Tile(const Chunk& c, const Corner& at) {
  V16 acc[kRows][kPanels];
  KV_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) acc[r][p] = Zero16();
  }
  if (c.load) {
    KV_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p)
        acc[r][p] = Load16(at.out + r * c.out_stride + p * 16);
    }
  }
  const float* HWY_RESTRICT a = c.a;
  const float* HWY_RESTRICT b = at.panel;
  for (std::size_t k = 0; k < c.k; ++k) {
    V16 w[kPanels];
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      const float* line = b + p * c.panel_stride;
      if constexpr (kFetch) hwy::Prefetch(line + kFetchAhead);
      w[p] = Load16(line);
    }
    KV_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const V16 x = Set16(kTransposed ? a[r] : a[r * c.a_stride]);
      KV_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) acc[r][p] = Fma16(x, w[p], acc[r][p]);
    }
    a += kTransposed ? c.a_stride : 1;
    b += 16;
  }
  if (at.bias) {
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      const V16 bias = Load16(at.bias + p * 16);
      KV_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) acc[r][p] = Add16(acc[r][p], bias);
    }
  }
  KV_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    KV_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      if (at.residual) {
        acc[r][p] = Add16(Load16(at.residual + r * c.residual_stride + p * 16), acc[r][p]);
      }
      Store16(acc[r][p], at.out + r * c.out_stride + p * 16);
    }
  }
}

// Rows and panels of the largest register tile: its accumulators, a broadcast and the weights fit
// the register file (32 on AVX-512 and NEON, 16 on AVX2), and there are at least 8 independent
// chains to hide the latency of a fused multiply-add, unless a single row waits for weights anyway.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kMaxRows = 12;
constexpr std::size_t PanelsFor(std::size_t rows) { return rows <= 4 ? 4 : 2; }
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kMaxRows = 6;
constexpr std::size_t PanelsFor(std::size_t rows) {
  return rows == 1 ? 4 : rows == 2 ? 3 : rows == 3 ? 2 : 1;
}
#else
constexpr std::size_t kMaxRows = 6;
constexpr std::size_t PanelsFor(std::size_t rows) {
  return rows == 1 ? 4 : rows == 2 ? 3 : rows == 3 ? 2 : 1;
}
#endif

template <std::size_t kRows, bool kTransposed, bool kFetch>
HWY_NOINLINE void RowTile(const Chunk& c, const Corner& first, std::size_t panels) {
  constexpr std::size_t kWide = PanelsFor(kRows);
  Corner at = {first.panel, first.out, first.bias, first.residual};
  for (; panels >= kWide; panels -= kWide) {
    Tile<kRows, kWide, kTransposed, kFetch>(c, at);
    at.Advance(kWide, c.panel_stride);
  }
  for (; panels > 0; --panels) {
    Tile<kRows, 1, kTransposed, kFetch>(c, at);
    at.Advance(1, c.panel_stride);
  }
}

template <bool kTransposed, std::size_t kRows = kMaxRows>
HWY_INLINE void RowTileOf(std::size_t rows, const Chunk& c, const Corner& first,
                          std::size_t panels) {
  if (rows == kRows) {
    if constexpr (kRows > kFewRows) {
      if (!c.fetch) return RowTile<kRows, kTransposed, false>(c, first, panels);
    }
    RowTile<kRows, kTransposed, true>(c, first, panels);
  } else if constexpr (kRows > 1) {
    RowTileOf<kTransposed, kRows - 1>(rows, c, first, panels);
  }
}

// The last panel when n is no multiple of 16: the tile works on padded copies.
template <bool kTransposed>
HWY_NOINLINE void TailTile(std::size_t rows, const Chunk& c, const Corner& at,
                           std::size_t columns) {
  HWY_ALIGN float out[kMaxRows * 16] = {};
  HWY_ALIGN float residual[kMaxRows * 16] = {};
  HWY_ALIGN float bias[16] = {};
  for (std::size_t r = 0; r < rows && c.load; ++r) {
    std::copy_n(at.out + r * c.out_stride, columns, out + r * 16);
  }
  for (std::size_t r = 0; r < rows && at.residual; ++r) {
    std::copy_n(at.residual + r * c.residual_stride, columns, residual + r * 16);
  }
  if (at.bias) std::copy_n(at.bias, columns, bias);
  const Chunk padded = {.a = c.a,
                        .a_stride = c.a_stride,
                        .panel_stride = c.panel_stride,
                        .k = c.k,
                        .out_stride = 16,
                        .residual_stride = 16,
                        .load = c.load,
                        .fetch = c.fetch};
  RowTileOf<kTransposed>(
      rows, padded, {at.panel, out, at.bias ? bias : nullptr, at.residual ? residual : nullptr}, 1);
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(out + r * 16, columns, at.out + r * c.out_stride);
  }
}

// One tile of up to kMaxRows rows and the panels [begin, end).
template <bool kTransposed>
HWY_INLINE void RowsAndPanels(const MatmulArgs& args, base::IndexRange ks, base::IndexRange rows,
                              base::IndexRange panels, bool fetch) {
  const PackedMatrix& w = *args.w;
  const std::size_t k0 = ks.begin;
  const bool last = ks.end == w.k();
  const Chunk c = {.a = args.a + rows.begin * args.a_row_stride + k0 * args.a_k_stride,
                   .a_stride = kTransposed ? args.a_k_stride : args.a_row_stride,
                   .panel_stride = w.k() * 16,
                   .k = ks.size(),
                   .out_stride = args.out_stride,
                   .residual_stride = args.out_stride,
                   .load = args.accumulate || k0 > 0,
                   .fetch = fetch};
  const std::size_t corner = rows.begin * args.out_stride + panels.begin * 16;
  Corner at = {.panel = w.panel(panels.begin) + k0 * 16,
               .out = args.out + corner,
               .bias = last && args.bias ? args.bias + panels.begin * 16 : nullptr,
               .residual = last && args.residual ? args.residual + corner : nullptr};
  const std::size_t whole_panels = args.padded_out ? w.panel_count() : w.n() / 16;
  const std::size_t full =
      std::min(panels.end, whole_panels) - std::min(panels.begin, whole_panels);
  if (full > 0) RowTileOf<kTransposed>(rows.size(), c, at, full);
  if (full == panels.size()) return;
  at.Advance(full, c.panel_stride);
  TailTile<kTransposed>(rows.size(), c, at, w.n() % 16);
}

// Floats of a row-major input that pass over each group of panels together. As long as a group's
// panels fit the first-level cache, so do they; else both stay in the second-level one.
constexpr std::size_t kNearSteps = 256;
constexpr std::size_t RowBlockFloats(std::size_t steps) {
  return steps <= kNearSteps ? 6144 : 98304;
}

template <bool kTransposed>
void MatmulTile(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  // A row-major input is cut into blocks of rows, and few panels at a time pass over a block. A
  // transposed one is read down its columns, a cache line a step: there one tile's lines stay while
  // all panels pass.
  // Partial sums would overwrite a residual that lies in out: then k is not split. Nor is it for
  // few rows, which use a panel once: they want to read it from end to end.
  const std::size_t k = args.w->k();
  const bool whole = args.residual == args.out || rows.size() <= kFewRows;
  const std::size_t steps = std::max<std::size_t>(1, whole ? k : std::min(kSplit<kTransposed>, k));
  const std::size_t block =
      kTransposed ? kMaxRows
                  : std::max<std::size_t>(1, RowBlockFloats(steps) / steps / kMaxRows) * kMaxRows;
  const std::size_t group = kTransposed || rows.size() <= kMaxRows
                                ? panels.size()
                                : PanelsFor(std::min(kMaxRows, rows.size()));
  for (std::size_t k0 = 0; k0 == 0 || k0 < k; k0 += steps) {
    for (std::size_t begin = rows.begin; begin < rows.end; begin += block) {
      const std::size_t end = std::min(begin + block, rows.end);
      for (std::size_t p = panels.begin; p < panels.end; p += group) {
        for (std::size_t r = begin; r < end; r += kMaxRows) {
          RowsAndPanels<kTransposed>(
              args, {k0, std::min(k0 + steps, k)}, {r, std::min(r + kMaxRows, end)},
              {p, std::min(p + group, panels.end)}, r == (kTransposed ? rows.begin : begin));
        }
      }
    }
  }
}

void MatmulImpl(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  if (args.a_k_stride == 1) {
    MatmulTile<false>(args, rows, panels);
  } else {
    MatmulTile<true>(args, rows, panels);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(MatmulImpl);

void Matmul(const MatmulArgs& args, base::IndexRange rows, base::IndexRange panels) {
  KV_DCHECK(args.a_k_stride == 1 || args.a_row_stride == 1);
  if (rows.size() == 0 || panels.size() == 0) return;
  if (args.w->rounded()) return BlockMatmul(args, rows, panels);
  HWY_DYNAMIC_DISPATCH(MatmulImpl)(args, rows, panels);
}

MatmulTileRange MatmulShare(const MatmulArgs& args, std::size_t rows, const base::Member& member) {
  const std::size_t panels = args.w->panel_count();
  const std::size_t members = member.count();
  MatmulTileRange tile{{0, rows}, {0, panels}};
  if (panels >= 2 * members && (panels >= 12 * members || rows < 24 * members)) {
    // Pairs stay whole, as rounded matrices want them.
    const base::IndexRange pairs = member.Share((panels + kPairPanels - 1) / kPairPanels);
    tile.panels = {pairs.begin * kPairPanels, std::min(panels, pairs.end * kPairPanels)};
  } else {  // Runs of 12 rows keep the largest register tiles busy.
    const base::IndexRange twelves = member.Share((rows + 11) / 12);
    tile.rows = {std::min(rows, twelves.begin * 12), std::min(rows, twelves.end * 12)};
  }
  Matmul(args, tile.rows, tile.panels);
  return tile;
}

void ReferenceMatmul(const MatmulArgs& args, std::size_t rows) {
  const PackedMatrix& w = *args.w;
  if (w.rounded()) return ReferenceBlockMatmul(args, rows);
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < w.n(); ++n) {
      float* out = args.out + m * args.out_stride + n;
      float acc = args.accumulate ? *out : 0.0f;
      for (std::size_t k = 0; k < w.k(); ++k) {
        const float x = args.a[m * args.a_row_stride + k * args.a_k_stride];
        acc = std::fma(x, w.panel(n / 16)[k * 16 + n % 16], acc);
      }
      if (args.bias) acc = acc + args.bias[n];
      if (args.residual) acc = args.residual[m * args.out_stride + n] + acc;
      *out = acc;
    }
  }
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
