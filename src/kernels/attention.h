// Causal attention over cached keys and values under rule R3.
#ifndef KVASIR_KERNELS_ATTENTION_H_
#define KVASIR_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "base/thread_team.h"
#include "kernels/kv_view.h"

namespace kvasir::kernels {

inline constexpr std::size_t kSoftmaxBlock = 64;      // positions, aligned to absolute positions
inline constexpr std::size_t kSoftmaxSegment = 1024;  // positions, likewise

// Writes key and value rows ([kv_heads · head_dim] each) of one position into the view.
void StoreKv(const KvView& view, std::size_t position, const float* k_row, const float* v_row);
// Reads them back, for dumps and tests; head by head.
void LoadKv(const KvView& view, std::size_t position, std::size_t kv_head, float* k, float* v);

// Queries at consecutive positions of one sequence; a query at position t sees the last `window`
// positions up to its own, max(0, t − window + 1) … t. kNoWindow: all, 0 … t.
inline constexpr std::size_t kNoWindow = SIZE_MAX;
struct AttentionArgs {
  const float* q = nullptr;  // [queries][heads · head_dim], row stride q_stride
  std::size_t q_stride = 0;
  std::size_t first_position = 0;  // of query 0
  std::size_t heads =
      0;               // a multiple of view.kv_heads; head h reads kv head h / (heads / kv_heads)
  float scale = 1.0f;  // score = (q · k) · scale
  std::size_t window = kNoWindow;  // >= 1
  KvView kv;                       // holds every position that a query sees
  float* out = nullptr;            // [queries][heads · head_dim], row stride out_stride
  std::size_t out_stride = 0;
};

// The given queries and heads. For each query: scores are chains over head_dim; within a block of
// 64 positions maximum m, weights exp(s − m), their lane sum l, and o[d] as a chain over positions;
// blocks merge in ascending order within a segment of 1,024, segments likewise:
// m' = max(m, m_b), l = fma(l, exp(m − m'), l_b · exp(m_b − m')), o likewise; finally o / l.
// head_dim <= kMaxHeadDim. Positions that a query does not see never reach its result, and no tile
// of 16 positions that none of the given queries sees is read.
void Attention(const AttentionArgs& args, base::IndexRange queries, base::IndexRange heads);
void ReferenceAttention(const AttentionArgs& args, base::IndexRange queries,
                        base::IndexRange heads);

inline constexpr std::size_t kMaxHeadDim = 512;

// First position that the query at this position sees.
inline std::size_t FirstVisible(std::size_t position, std::size_t window) {
  return position < window ? 0 : position - window + 1;
}

// Rows computed side by side: consecutive queries of a head, or, where there are fewer, heads of
// one query. One read of K and V serves all that share a kv head; those that do not at least
// overlap.
inline constexpr std::size_t kAttentionTileRows = 4;

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_ATTENTION_H_
