// What stands between the products of attention: rotary positions, rounding of keys and values as a
// cache would round them, and attention itself.
#ifndef KVASIR_TRAINING_ATTENTION_MIDDLE_H_
#define KVASIR_TRAINING_ATTENTION_MIDDLE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "base/aligned.h"
#include "training/attention_grad.h"
#include "training/branch_middle.h"
#include "training/kv_run.h"
#include "training/network_plan.h"
#include "training/rotary_turns.h"

namespace kvasir::training {

// What the layers share, since one of them works at a time.
class AttentionShared {
 public:
  // For micro-batches of at most so many sequences, and teams of so many members.
  AttentionShared(const NetworkPlan& plan, std::size_t sequences, std::size_t members);

  // Bytes of keys and values of the layer that takes most, and members that get a kv head.
  static std::size_t KvBytes(const NetworkPlan& plan, std::size_t sequences);
  static std::size_t ExaggeratedBytes(const NetworkPlan& plan, std::size_t sequences);
  static std::size_t Workers(const NetworkPlan& plan, std::size_t sequences, std::size_t members);

  const AttentionPlan plan;
  const std::size_t sequences, context;
  std::optional<RotaryTurns> turns;  // None: positions are learned.
  base::AlignedArray<std::byte> kv;
  // Where rounding errors may be exaggerated: what queries read then, as rows [rows][2 · kv_width]
  // and as attention wants it.
  base::AlignedArray<float> exaggerated_rows;
  base::AlignedArray<std::byte> exaggerated_kv;
  KvRun exaggerated;
  std::vector<AttentionGrad> grads;  // [workers]
};

// Rows before: queries, keys and values, [qkv_width]; after: heads side by side, [q_width].
class AttentionMiddle : public BranchMiddle {
 public:
  // shared outlives this.
  AttentionMiddle(const NetworkPlan& plan, std::size_t layer, AttentionShared& shared);

  void Forward(const Pass& pass, float* first, float* last) override;
  void Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) override;

 private:
  const KvRun& RunOf(std::size_t kv_head) const;
  // Applies body(run) to the runs that rotate.
  template <typename Body>
  void VisitRotated(const Body& body) const {
    for (const KvRun& run : runs_) {
      if (run.heads().policy.rotate) body(run);
    }
  }
  // Rotates the run's queries, keys and values of a row; twice is as good as never.
  void RotateRow(const KvRun& run, float* first) const;
  void RotateHeads(const KvRun& run, float* last) const;
  // The rows' keys and values, those of rounded runs alone if so wanted.
  void Store(const Pass& pass, const float* first, bool rounded_only) const;
  // After Store: keys and values with their errors multiplied, where the pass wants that.
  bool Exaggerates(const Pass& pass) const { return pass.disturbance.kv_error != 1; }
  void Exaggerate(const Pass& pass, const float* first) const;
  void ExaggerateRow(const KvRun& run, std::size_t row, std::size_t length, float error,
                     const float* exact, float* read) const;
  void Attend(const Pass& pass, const float* first, float* last) const;

  AttentionShared& shared_;
  const AttentionPlan& plan_;
  std::vector<KvRun> runs_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_ATTENTION_MIDDLE_H_
