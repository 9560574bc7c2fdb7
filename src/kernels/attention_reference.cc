// Attention by the definition (R3), one number after the other: for readers and as the tests'
// oracle.
#include <cmath>

#include "kernels/attention.h"
#include "kernels/kv_address.h"
#include "kernels/reference_softmax.h"

namespace kvasir::kernels {

void ReferenceAttention(const AttentionArgs& args, base::IndexRange queries,
                        base::IndexRange heads) {
  const std::size_t head_dim = args.kv.head_dim;
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    const std::size_t kv_head = head / (args.heads / args.kv.kv_heads);
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const float* q = args.q + query * args.q_stride + head * head_dim;
      const auto score = [&](std::size_t j) {
        const float* tile = KTile(args.kv, j, kv_head);
        float s = 0;
        for (std::size_t d = 0; d < head_dim; ++d) {
          s = std::fma(q[d], tile[d * kLanes + j % kLanes], s);
        }
        return s * args.scale;
      };
      const auto value = [&](std::size_t j) { return VRow(args.kv, j, kv_head); };
      const std::size_t position = args.first_position + query;
      ReferenceSoftmax(FirstVisible(position, args.window), position + 1, head_dim, score, value,
                       args.out + query * args.out_stride + head * head_dim);
    }
  }
}

}  // namespace kvasir::kernels
