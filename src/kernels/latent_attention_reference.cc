// Latent attention by the definition (R3), one number after the other: for readers and as the
// tests' oracle.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/latent_attention.h"
#include "kernels/scalar_math.h"

namespace kvasir::kernels {
namespace {

struct State {
  float m = -HUGE_VALF;
  float l = 0;
  std::vector<float> o;  // [latent_dim]
};

void Merge(State& total, const State& part) {
  if (total.m == -HUGE_VALF) {
    total = part;
    return;
  }
  const float m = std::max(total.m, part.m);
  const float a = ExpF32(total.m - m);
  const float b = ExpF32(part.m - m);
  total.m = m;
  total.l = std::fma(total.l, a, part.l * b);
  for (std::size_t d = 0; d < total.o.size(); ++d) {
    total.o[d] = std::fma(total.o[d], a, part.o[d] * b);
  }
}

// Positions begin … end − 1 of one block; begin is a multiple of 64.
State OneBlock(const LatentAttentionArgs& args, const float* q, std::size_t begin,
               std::size_t end) {
  const LatentView& latents = args.latents;
  State state;
  std::vector<float> score(end - begin);
  for (std::size_t j = begin; j < end; ++j) {
    const float* row = latents.Row(j);
    float s = 0;
    for (std::size_t d = 0; d < latents.width(); ++d) s = std::fma(q[d], row[d], s);
    score[j - begin] = s * args.scale;
    state.m = std::max(state.m, score[j - begin]);
  }
  float lane[kLanes] = {};
  state.o.assign(latents.latent_dim, 0.0f);
  for (std::size_t j = begin; j < end; ++j) {
    const float p = ExpF32(score[j - begin] - state.m);
    lane[j % kLanes] += p;
    const float* row = latents.Row(j);
    for (std::size_t d = 0; d < latents.latent_dim; ++d) {
      state.o[d] = std::fma(p, row[d], state.o[d]);
    }
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  state.l = lane[0];
  return state;
}

}  // namespace

void ReferenceLatentAttention(const LatentAttentionArgs& args, base::IndexRange queries,
                              base::IndexRange heads) {
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const float* q = args.q + query * args.q_stride + head * args.latents.width();
      const std::size_t seen = args.first_position + query + 1;
      State total;
      for (std::size_t segment = 0; segment < seen; segment += kSoftmaxSegment) {
        State sum;
        const std::size_t end = std::min(seen, segment + kSoftmaxSegment);
        for (std::size_t begin = segment; begin < end; begin += kSoftmaxBlock) {
          Merge(sum, OneBlock(args, q, begin, std::min(end, begin + kSoftmaxBlock)));
        }
        Merge(total, sum);
      }
      float* out = args.out + query * args.out_stride + head * args.latents.latent_dim;
      for (std::size_t d = 0; d < args.latents.latent_dim; ++d) out[d] = total.o[d] / total.l;
    }
  }
}

}  // namespace kvasir::kernels
