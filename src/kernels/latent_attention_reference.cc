// Latent attention by the definition (R3), one number after the other: for readers and as the
// tests' oracle.
#include <cmath>

#include "kernels/latent_attention.h"
#include "kernels/reference_softmax.h"

namespace kvasir::kernels {

void ReferenceLatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                              base::IndexRange heads) {
  const LatentView& latents = args.latents;
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const float* q = args.q + query * args.q_stride + head * latents.width();
      const auto score = [&](std::size_t j) {
        const float* row = latents.Row(j);
        float s = 0;
        for (std::size_t d = 0; d < latents.width(); ++d) s = std::fma(q[d], row[d], s);
        return s * args.scale;
      };
      const auto value = [&](std::size_t j) { return latents.Row(j); };
      ReferenceSoftmax(0, args.first_position + query + 1, latents.latent_dim, score, value,
                       args.out + query * args.out_stride + head * latents.latent_dim);
    }
  }
}

}  // namespace kvasir::kernels
