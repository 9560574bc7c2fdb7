// Latent attention by the definition (R3), one number after the other: for readers and as the
// tests' oracle.
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/latent_attention.h"
#include "kernels/reference_softmax.h"

namespace kvasir::kernels {
namespace {

float Score(const LatentAttentionArgs& args, const float* q, std::size_t position) {
  const float* row = args.latents.Row(position);
  float s = 0;
  for (std::size_t d = 0; d < args.latents.width(); ++d) s = std::fma(q[d], row[d], s);
  return s * args.scale;
}

const float* QueryOf(const LatentAttentionArgs& args, std::size_t query, std::size_t head) {
  return args.q + query * args.q_stride + head * args.latents.width();
}

std::vector<std::size_t> Seen(const LatentAttentionArgs& args, std::size_t query) {
  std::vector<std::size_t> seen(args.first_position + query + 1);
  std::iota(seen.begin(), seen.end(), 0);
  return seen;
}

}  // namespace

void ReferenceLatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                              base::IndexRange heads) {
  const LatentView& latents = args.latents;
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const float* q = QueryOf(args, query, head);
      const auto score = [&](std::size_t j) { return Score(args, q, j); };
      const auto weigh = [&](SeenPositions positions, std::span<const float> weights, float* o) {
        for (std::size_t i = 0; i < positions.size(); ++i) {
          const float* row = latents.Row(positions[i]);
          for (std::size_t d = 0; d < latents.latent_dim; ++d) {
            o[d] = std::fma(weights[i], row[d], o[d]);
          }
        }
      };
      ReferenceSoftmax(Seen(args, query), latents.latent_dim, score, weigh,
                       args.out + query * args.out_stride + head * latents.latent_dim);
    }
  }
}

void ReferenceLatentAttentionWeights(const LatentAttentionArgs& args, std::size_t query,
                                     std::size_t head, float* weights) {
  const float* q = QueryOf(args, query, head);
  const std::vector<std::size_t> seen = Seen(args, query);
  ReferenceSoftmaxWeights(
      seen, seen.size(), [&](std::size_t j) { return Score(args, q, j); }, weights);
}

}  // namespace kvasir::kernels
