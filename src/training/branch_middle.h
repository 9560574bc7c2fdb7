// What a branch does between its first product and its last.
#ifndef KVASIR_TRAINING_BRANCH_MIDDLE_H_
#define KVASIR_TRAINING_BRANCH_MIDDLE_H_

#include "training/micro_batch.h"

namespace kvasir::training {

// Rows have the widths of the branch's plan. Every method is called by all members of a region and
// ends with a barrier.
class BranchMiddle {
 public:
  virtual ~BranchMiddle() = default;

  // last [rows][last_inputs] from first [rows][first_outputs], which it may change: Backward is
  // given what Forward left.
  virtual void Forward(const Pass& pass, float* first, float* last) = 0;

  // dfirst [rows][first_outputs] from dlast [rows][last_inputs], which it may change.
  virtual void Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) = 0;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_BRANCH_MIDDLE_H_
