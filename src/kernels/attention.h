// Causal attention over cached keys and values under rules R3 and R6.
#ifndef KVASIR_KERNELS_ATTENTION_H_
#define KVASIR_KERNELS_ATTENTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/thread_team.h"
#include "kernels/kv_store.h"  // IWYU pragma: export
#include "kernels/kv_view.h"
#include "kernels/rope.h"

namespace kvasir::kernels {

inline constexpr std::size_t kSoftmaxBlock = 64;      // positions, aligned to absolute positions
inline constexpr std::size_t kSoftmaxSegment = 1024;  // positions, likewise

// How the keys of sinks are turned when they are read, for models with rotary positions: a sink is
// seen as if it stood just before the window, so its place depends on the query.
struct SinkTurns {
  // [queries][sinks][2][pairs], cosines before sines (RopeTurn), from a query to the next
  // query_stride floats. Null: keys of sinks are read as they are stored, like any others.
  const float* turns = nullptr;
  std::size_t query_stride = 0;
  std::size_t pairs = 0;  // 2 · pairs <= head_dim
  RopePairing pairing = RopePairing::kNeighbours;
  bool rotate = false;  // Then the Hadamard rotation (hadamard.h).
};

// Queries at consecutive positions of one sequence; a query at position t sees the last `window`
// positions up to its own, max(0, t − window + 1) … t, and positions 0 … sinks − 1 as far as t.
// kNoWindow: all, 0 … t.
inline constexpr std::size_t kNoWindow = SIZE_MAX;
struct AttentionArgs {
  const float* q = nullptr;  // [queries][heads · head_dim], row stride q_stride
  std::size_t q_stride = 0;
  std::size_t first_position = 0;  // of query 0
  std::size_t heads =
      0;               // a multiple of view.kv_heads; head h reads kv head h / (heads / kv_heads)
  float scale = 1.0f;  // score = (q · k) · scale
  std::size_t window = kNoWindow;  // >= 1
  std::size_t sinks = 0;           // <= kMaxSinks, <= window
  SinkTurns sink_turns = {};
  KvView kv;             // holds every position that a query sees
  float* out = nullptr;  // [queries][heads · head_dim], row stride out_stride
  std::size_t out_stride = 0;
};

// The given queries and heads. For each query: scores are chains over head_dim; within a block of
// 64 positions maximum m, weights w = exp(s − m), their lane sum l, and o[d] as a chain over
// positions; blocks merge in ascending order within a segment of 1,024, segments likewise:
// m' = max(m, m_b), l = fma(l, exp(m − m'), l_b · exp(m_b − m')), o likewise; finally o / l.
// What is a chain over numbers as stored (n, exactly as f32), and where scales come in (R6):
//   K f32, f16, bf16   score = chain fma(q[d], n[d]) · scale
//   K int8             score = (chain fma(q[d], n[d]) · s) · scale
//   K int4             score = fma(s, chain fma(q[d], n[d]), m · qsum) · scale,
//                      qsum = lane sum (R2) of q
//   K int4 per channel score = (chain fma(q[d] · s[d], n[d]) + qm) · scale,
//                      qm = lane sum of fma(q[d], m[d]); in the query's own group as f32
//   V f32, f16, bf16   o[d] = chain fma(w, n[d])
//   V int8             o[d] = chain fma(w · s, n[d])
//   V int4             o[d] = chain fma(w · s, n[d]) + wm, wm = lane sum of fma(w, m) over the
//                      block's visible positions
//   turned sinks       score = chain fma(q[d], k[d]) · scale, k = the key as LoadKey reads it,
//                      turned as Rope does, then rotated
// head_dim <= kMaxHeadDim. Positions that a query does not see never reach its result, and no tile
// of 16 positions that none of the given queries sees is read.
void Attention(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads);
void ReferenceAttention(const AttentionArgs& args, base::IndexRange queries,
                        base::IndexRange heads);
// How the sum of one query and head is made up: weights [its position + 1], of each position's
// value, 0 where the query does not see it. The bits are what Attention gives if values are unit
// vectors; their sum is 1 but for rounding. For dumps and tests.
void ReferenceAttentionWeights(const AttentionArgs& args, std::size_t query, std::size_t head,
                               float* weights);

inline constexpr std::size_t kMaxHeadDim = 512;
inline constexpr std::size_t kMaxSinks = 256;

// First position of its window that the query at this position sees.
inline std::size_t FirstVisible(std::size_t position, std::size_t window) {
  return position < window ? 0 : position - window + 1;
}
// How many of the first positions it sees as sinks.
inline std::size_t VisibleSinks(std::size_t position, std::size_t sinks) {
  return std::min(sinks, position + 1);
}

// Rows computed side by side: consecutive queries of a head, or, where there are fewer, heads of
// one query. One read of K and V serves all that share a kv head; those that do not at least
// overlap.
inline constexpr std::size_t kAttentionTileRows = 4;

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_ATTENTION_H_
