// Causal multi-head latent attention over cached latents, absorbed, under rule R3 (DeepSeek-V2,
// arXiv:2405.04434, section 2.1).
#ifndef KVASIR_KERNELS_LATENT_ATTENTION_H_
#define KVASIR_KERNELS_LATENT_ATTENTION_H_

#include <cstddef>

#include "base/thread_team.h"
#include "kernels/latent_view.h"

namespace kvasir::kernels {

inline constexpr std::size_t kMaxLatentDim = 512;     // DeepSeek-V2 and V3 have 512
inline constexpr std::size_t kMaxLatentRopeDim = 64;  // and 64.

// Writes one position's latent ([latent_dim]) and rotated key ([rope_dim]) into the view.
void StoreLatent(const LatentView& view, std::size_t position, const float* latent,
                 const float* rope_key);

// Plain attention would rebuild every head's keys W_uk c and values W_uv c from the latents c.
// Absorbed, W_uk moves to the query, q · W_uk c = (W_ukᵀ q) · c, and W_uv behind the sum, so that
// all heads read the same cached rows: attention with one key head of latent_dim + rope_dim values
// whose first latent_dim values are the value too.
//
// Queries at consecutive positions of one sequence; a query at position t sees 0 … t.
struct LatentAttentionArgs {
  const float* q = nullptr;        // [queries][heads · (latent_dim + rope_dim)], row stride
  std::size_t q_stride = 0;        // q_stride; of each head W_ukᵀ q_nope, then q_rope
  std::size_t first_position = 0;  // of query 0
  std::size_t heads = 0;
  float scale = 1.0f;    // score = (q · row) · scale
  LatentView latents;    // holds positions 0 … first_position + queries − 1
  float* out = nullptr;  // [queries][heads · latent_dim], row stride out_stride: W_uv comes after
  std::size_t out_stride = 0;
};

// The given queries and heads. The order of every sum is that of Attention: a score is a chain over
// the row's values ascending; blocks of 64 and segments of 1,024 positions, by absolute position;
// each output a chain over positions ascending. So the bits are those of Attention with one key
// head whose value rows were copied. latent_dim in 1 … kMaxLatentDim, rope_dim <=
// kMaxLatentRopeDim. Positions beyond a query's own are not read. Takes 140 KiB of stack.
void LatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                     base::IndexRange heads);
void ReferenceLatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                              base::IndexRange heads);
// As ReferenceAttentionWeights: weights [the query's position + 1].
void ReferenceLatentAttentionWeights(const LatentAttentionArgs& args, std::size_t query,
                                     std::size_t head, float* weights);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_LATENT_ATTENTION_H_
