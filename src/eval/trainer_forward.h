// The trainer's evaluation pass over a model's weights, for Verify to compare with the sampler's.
#ifndef KVASIR_EVAL_TRAINER_FORWARD_H_
#define KVASIR_EVAL_TRAINER_FORWARD_H_

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/verify.h"
#include "model/model.h"

namespace kvasir::eval {

// A trainer of its own holds a copy of the weights (and of what else it needs, about six times as
// much). Null for an architecture that the trainer does not know, and for rounded
// weights: it trains numbers of f32, whose products follow R1 where the sampler's follow R6. The
// team must outlive the function; the model need not. Single-threaded but for the team.
base::Result<SequenceForward> MakeTrainerForward(const model::Model& model, base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_TRAINER_FORWARD_H_
