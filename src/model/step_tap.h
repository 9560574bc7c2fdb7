// Reading along while a step runs: what dumps and tests see of a forward pass.
#ifndef KVASIR_MODEL_STEP_TAP_H_
#define KVASIR_MODEL_STEP_TAP_H_

#include <cstddef>

#include "base/thread_team.h"
#include "kernels/attention.h"
#include "kernels/latent_attention.h"

namespace kvasir::model {

// Consecutive positions of one of the step's items, in a layer.
struct TapRows {
  std::size_t layer = 0;
  std::size_t item = 0;
  std::size_t first_position = 0;
  std::size_t count = 0;
};

// Set in a step's Scratch; may change nothing. What it is shown lives for the call alone. Calls of
// one layer come while no member of the team changes what they show, and every member makes those
// that take a Member, so that they may share the work.
//
// A layer that is computed again (store=none) shows all positions again; the last of the layers
// that a step computes in one go shows only the rows that go on to what follows: of the model's
// last layer, those whose logits are wanted.
class StepTap {
 public:
  virtual ~StepTap() = default;

  // The residual stream as it enters the layer, x [count][embedding]; of layer number `layers`,
  // after the last, the rows whose logits are wanted, with the final norm applied. By one member.
  virtual void OnHidden(const TapRows& rows, const float* x) = 0;
  // Queries as attention reads them (normed, turned, rotated) beside what they see; query i stands
  // at first_position + i. These are the layer's heads from first_head on.
  virtual void OnAttention(const base::Member& member, const TapRows& rows, std::size_t first_head,
                           const kernels::AttentionArgs& args) = 0;
  // The same of all heads of a layer with latents, in absorbed form.
  virtual void OnLatentAttention(const base::Member& member, const TapRows& rows,
                                 const kernels::LatentAttentionArgs& args) = 0;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_STEP_TAP_H_
