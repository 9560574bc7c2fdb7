// One branch of a layer, attention or MLP: x + dropout(last(middle(first(norm(x))))).
#ifndef KVASIR_TRAINING_BRANCH_H_
#define KVASIR_TRAINING_BRANCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned.h"
#include "training/branch_middle.h"
#include "training/linear.h"
#include "training/network_plan.h"
#include "training/norm_rows.h"

namespace kvasir::training {

// Zeroes and scales elements of rows [rows][width] of a micro-batch, at a place ("site") of the
// network. This member's sequences; no barrier.
void DropRows(const Pass& pass, std::uint32_t site, std::size_t width, float* rows);

// What a branch keeps of its forward pass for the backward pass.
struct BranchRows {
  BranchRows(const BranchPlan& plan, std::size_t width, std::size_t rows)
      : normed(rows * width),
        first(rows * plan.first_outputs),
        last(rows * plan.last_inputs),
        stats(rows) {}
  base::AlignedArray<float> normed;      // [rows][width]
  base::AlignedArray<float> first;       // [rows][first_outputs]
  base::AlignedArray<float> last;        // [rows][last_inputs]
  std::vector<kernels::RowStats> stats;  // [rows]
};

// What the branches share, since one of them works at a time.
struct BranchScratch {
  BranchScratch(const NetworkPlan& plan, std::size_t rows)
      : added(rows * plan.embedding),
        dadded(rows * plan.embedding),
        dnormed(rows * plan.embedding),
        dlast(rows * plan.max_last_inputs()),
        dfirst(rows * plan.max_first_outputs()),
        packed_last(plan.max_last_inputs(), rows),
        packed_normed(plan.embedding, rows) {}
  base::AlignedArray<float> added;    // [rows][embedding] what the branch adds, before dropout
  base::AlignedArray<float> dadded;   // [rows][embedding]
  base::AlignedArray<float> dnormed;  // [rows][embedding]
  base::AlignedArray<float> dlast;    // [rows][last_inputs]
  base::AlignedArray<float> dfirst;   // [rows][first_outputs]
  kernels::PackedMatrix packed_last, packed_normed;
};

// Single-threaded but for methods that take a Member or a Pass, which every member of a region
// calls; these end with a barrier, but for Pack.
class Branch {
 public:
  // site: of its dropout. Scratch and what the middle refers to outlive this.
  Branch(const NetworkPlan& network, BranchPlan plan, std::unique_ptr<BranchMiddle> middle,
         std::uint32_t site, BranchScratch& scratch);

  void Bind(const BoundParameters& parameters);
  void Pack(const Member& member);  // This member's share; no barrier.

  // out [rows][embedding] = x and what the branch adds; kept is filled.
  void Forward(const Pass& pass, const float* x, BranchRows& kept, float* out);
  // Fills kept as Forward does.
  void Recompute(const Pass& pass, const float* x, BranchRows& kept);
  // dx [rows][embedding], the gradient of out, becomes that of x; weights' gradients are added up.
  void Backward(const Pass& pass, const float* x, BranchRows& kept, float* dx);

  const BranchPlan& plan() const { return plan_; }

 private:
  void AddLast(const Pass& pass, const float* x, const BranchRows& kept, float* out);

  BranchPlan plan_;
  std::size_t width_;
  std::unique_ptr<BranchMiddle> middle_;
  std::uint32_t site_;
  BranchScratch& scratch_;
  NormRows norm_;
  Linear first_, last_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_BRANCH_H_
