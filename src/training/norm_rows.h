// The norm in front of a branch, LayerNorm or RMSNorm, with its gradients.
#ifndef KVASIR_TRAINING_NORM_ROWS_H_
#define KVASIR_TRAINING_NORM_ROWS_H_

#include <cstddef>

#include "kernels/norm.h"
#include "training/micro_batch.h"
#include "training/network_plan.h"
#include "training/parameters.h"

namespace kvasir::training {

// Single-threaded but for methods that take a Member.
class NormRows {
 public:
  NormRows(NormKind kind, std::size_t width, float eps) : kind_(kind), width_(width), eps_(eps) {}

  // [width]; RMSNorm has no bias.
  void Bind(const Parameter& gain, const Parameter& bias) {
    gain_ = gain;
    bias_ = bias;
  }

  // y [rows][width] of x: this member's rows; no barrier. stats [rows] is for Backward.
  void Forward(const Member& member, const float* x, std::size_t rows, float* y,
               kernels::RowStats* stats) const;

  // dx += the gradient through the norm, and the gradients of gain and bias: chains over the rows.
  // Ends with a barrier.
  void Backward(Member& member, const float* x, const float* dy, std::size_t rows,
                kernels::RowStats* stats, float* dx) const;

 private:
  NormKind kind_;
  std::size_t width_;
  float eps_;
  Parameter gain_, bias_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_NORM_ROWS_H_
