// Attention by the definition (R3), one number after the other: for readers and as the tests'
// oracle.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/kv_address.h"
#include "kernels/scalar_math.h"

namespace kvasir::kernels {
namespace {

struct State {
  float m = -HUGE_VALF;
  float l = 0;
  std::vector<float> o;
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

State OneBlock(const AttentionArgs& args, const float* q, std::size_t kv_head, std::size_t begin,
               std::size_t end) {
  const std::size_t head_dim = args.kv.head_dim;
  std::vector<float> score(end - begin);
  State state;
  for (std::size_t j = begin; j < end; ++j) {
    const float* tile = KTile(args.kv, j, kv_head);
    float s = 0;
    for (std::size_t d = 0; d < head_dim; ++d) s = std::fma(q[d], tile[d * kLanes + j % kLanes], s);
    score[j - begin] = s * args.scale;
    state.m = std::max(state.m, score[j - begin]);
  }
  float lane[kLanes] = {};
  state.o.assign(head_dim, 0.0f);
  for (std::size_t j = begin; j < end; ++j) {
    const float p = ExpF32(score[j - begin] - state.m);
    lane[j % kLanes] = lane[j % kLanes] + p;
    const float* v = VRow(args.kv, j, kv_head);
    for (std::size_t d = 0; d < head_dim; ++d) state.o[d] = std::fma(p, v[d], state.o[d]);
  }
  for (std::size_t half = kLanes / 2; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
  }
  state.l = lane[0];
  return state;
}

}  // namespace

void ReferenceAttention(const AttentionArgs& args, base::IndexRange queries,
                        base::IndexRange heads) {
  const std::size_t head_dim = args.kv.head_dim;
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    const std::size_t kv_head = head / (args.heads / args.kv.kv_heads);
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const float* q = args.q + query * args.q_stride + head * head_dim;
      const std::size_t seen = args.first_position + query + 1;
      const std::size_t first = FirstVisible(seen - 1, args.window);
      State total;
      for (std::size_t segment = 0; segment < seen; segment += kSoftmaxSegment) {
        State sum;
        const std::size_t end = std::min(seen, segment + kSoftmaxSegment);
        for (std::size_t block = segment; block < end; block += kSoftmaxBlock) {
          const std::size_t begin = std::max(block, first);
          const std::size_t block_end = std::min(end, block + kSoftmaxBlock);
          if (begin < block_end) Merge(sum, OneBlock(args, q, kv_head, begin, block_end));
        }
        if (!sum.o.empty()) Merge(total, sum);
      }
      float* out = args.out + query * args.out_stride + head * head_dim;
      for (std::size_t d = 0; d < head_dim; ++d) out[d] = total.o[d] / total.l;
    }
  }
}

}  // namespace kvasir::kernels
