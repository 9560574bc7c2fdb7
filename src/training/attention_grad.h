// The backward pass of attention, one kv head of one sequence at a time.
#ifndef KVASIR_TRAINING_ATTENTION_GRAD_H_
#define KVASIR_TRAINING_ATTENTION_GRAD_H_

#include <cstddef>
#include <vector>

#include "base/aligned.h"
#include "kernels/packed_matrix.h"
#include "training/kv_run.h"
#include "training/network_plan.h"

namespace kvasir::training {

// What one member needs for it. Weights are computed again, over the whole row at once. Where keys
// and values are rounded, the numbers are those that queries read, and the gradient of what was
// rounded is that of what was read: straight through (Bengio et al. 2013, arXiv:1308.3432).
// Single-threaded.
class AttentionGrad {
 public:
  // For sequences of at most `context` positions.
  AttentionGrad(const NetworkPlan& plan, std::size_t context);

  // Rows of one sequence, as attention has them: first [length][qkv_width] turned and rotated,
  // dlast [length][q_width].
  struct Rows {
    std::size_t sequence = 0;  // Of the micro-batch.
    std::size_t length = 0;
    const float* first = nullptr;
    const float* dlast = nullptr;
    float* dfirst = nullptr;  // [length][qkv_width]: written, of the kv head and its queries.
    // [length][2 · kv_width]: keys and values as queries read them; null: as the run has them.
    const float* read = nullptr;
  };
  // The gradients of a kv head are chains over its query heads ascending, and of each over the
  // queries ascending. If the run rounds and rows.read is null,
  // its keys and values must be stored.
  void Run(const KvRun& run, const Rows& rows, std::size_t kv_head);

  // Floats that it takes for this network.
  static std::size_t Floats(const NetworkPlan& plan, std::size_t context);

 private:
  // Rows of a sequence packed as the second factor of sums over positions, in segments, so that a
  // sum may leave out those whose terms are all 0: it has the same bits.
  class Segments {
   public:
    Segments() = default;
    Segments(std::size_t channels, std::size_t context);
    // Of rows that lie `stride` apart.
    void Pack(const float* rows, std::size_t stride, std::size_t channels, std::size_t length);
    const kernels::PackedMatrix& operator[](std::size_t segment) const { return parts_[segment]; }

   private:
    std::vector<kernels::PackedMatrix> parts_;  // [channels, up to kSegment positions]
  };

  // Element (position, channel) at data[position · stride + channel].
  struct Strided {
    const float* data = nullptr;
    std::size_t stride = 0;
  };

  void PackRead(const KvRun& run, const Rows& rows, std::size_t kv_head);
  void LoadRounded(const KvRun& run, const Rows& rows, std::size_t kv_head);
  void Weights(const KvRun& run, std::size_t length, const Strided& q, const Strided& dout);
  // dq += weights · keys: of ds_ or p_, whose rows are queries.
  void AddOverKeys(const KvRun& run, std::size_t length, const float* weights, const Segments& keys,
                   bool carry_on, float* dq) const;
  // dkv += weightsᵀ · rows: sums over the queries that see a key.
  void AddOverQueries(const KvRun& run, std::size_t length, const float* weights,
                      const Segments& rows, bool carry_on, float* dkv) const;
  void QueryGrad(const KvRun& run, std::size_t length, float* dq);

  const AttentionPlan plan_;
  std::size_t group_ = 0;  // Positions whose queries read their own keys exactly; 0: none.
  base::AlignedArray<float> p_, ds_;     // [length][length]
  kernels::PackedMatrix keys_, values_;  // [length, head_dim]
  Segments keys_by_channel_, queries_by_channel_, grads_by_channel_;
  // Only where something is rounded: what is read, [length][head_dim]; of keys by channel the exact
  // ones, which queries of their own group read.
  base::AlignedArray<float> read_keys_, read_values_;
  kernels::PackedMatrix own_keys_;
  Segments own_keys_by_channel_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_ATTENTION_GRAD_H_
