// How fast a model of a shape trains: whole steps of the trainer on random tokens.
#ifndef KVASIR_EVAL_TRAINING_SPEED_H_
#define KVASIR_EVAL_TRAINING_SPEED_H_

#include <cstdint>

#include "base/result.h"
#include "base/thread_team.h"
#include "training/model_config.h"

namespace kvasir::eval {

struct TrainingSpeed {
  double ms_per_step = 0;   // Forward, backward, AdamW; the median of the repetitions.
  double tokens_per_s = 0;  // Of sequences · context tokens a step.
  double gflop_per_s = 0;   // Multiply-adds of the matrices and of attention, three times forward.
};
// One step a repetition, after one that is not counted; `sequences` of the whole context a step, no
// dropout. Checked: the gradient has the same bits with one sequence computed at a time. kUsage for
// a shape or number that is not allowed, kNumeric if the check fails. Single-threaded but for the
// team.
base::Result<TrainingSpeed> MeasureTraining(const training::ModelConfig& config,
                                            std::uint64_t sequences, std::uint64_t repetitions,
                                            base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_TRAINING_SPEED_H_
