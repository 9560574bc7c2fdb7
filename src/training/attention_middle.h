// What stands between the products of attention: rotary positions and attention itself.
#ifndef KVASIR_TRAINING_ATTENTION_MIDDLE_H_
#define KVASIR_TRAINING_ATTENTION_MIDDLE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "base/aligned.h"
#include "kernels/packed_matrix.h"
#include "training/branch_middle.h"
#include "training/kv_rows.h"
#include "training/network_plan.h"
#include "training/rotary_turns.h"

namespace kvasir::training {

// What the layers share, since one of them works at a time.
class AttentionShared {
 public:
  // One member's, for the backward pass of one head.
  struct Workspace {
    base::AlignedArray<float> p, ds;  // [length][length]
    kernels::PackedMatrix keys, values, keys_t, queries_t, grads_t;
  };

  // For micro-batches of at most so many sequences, and teams of so many members.
  AttentionShared(const NetworkPlan& plan, std::size_t sequences, std::size_t members);

  const AttentionPlan plan;
  KvRows kv;
  std::optional<RotaryTurns> turns;  // None: positions are learned.
  std::vector<Workspace> work;       // [members that have a kv head to work on]
};

// Rows before: queries, keys and values, [qkv_width]; after: heads side by side, [q_width].
class AttentionMiddle : public BranchMiddle {
 public:
  // window: of the layer; kNoWindow for none. shared outlives this.
  AttentionMiddle(AttentionShared& shared, std::size_t window)
      : shared_(shared), plan_(shared.plan), window_(window) {}

  void Forward(const Pass& pass, float* first, float* last) override;
  void Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) override;

 private:
  // The kv head's part of dfirst, that of its queries included; rows [length] of one sequence.
  void KvHeadGrad(AttentionShared::Workspace& work, std::size_t length, std::size_t kv_head,
                  const float* first, const float* dlast, float* dfirst) const;
  // P and dS of one query head, in work.
  void WeightsAndGrads(AttentionShared::Workspace& work, std::size_t length, const float* q,
                       const float* grad) const;
  float Scale() const;

  AttentionShared& shared_;
  const AttentionPlan& plan_;
  const std::size_t window_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_ATTENTION_MIDDLE_H_
