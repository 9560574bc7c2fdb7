// What stands between the products of an MLP: GELU or SwiGLU.
#ifndef KVASIR_TRAINING_MLP_MIDDLE_H_
#define KVASIR_TRAINING_MLP_MIDDLE_H_

#include <cstddef>

#include "training/branch_middle.h"
#include "training/network_plan.h"

namespace kvasir::training {

class MlpMiddle : public BranchMiddle {
 public:
  // width: of the MLP's middle. SwiGLU's first rows are [2 · width], gate before up.
  MlpMiddle(MlpKind kind, std::size_t width) : kind_(kind), width_(width) {}

  void Forward(const Pass& pass, float* first, float* last) override;
  void Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) override;

 private:
  const MlpKind kind_;
  const std::size_t width_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_MLP_MIDDLE_H_
