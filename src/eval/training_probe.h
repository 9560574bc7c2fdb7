// How long a training run will take: a short measurement of its real shape on its real text.
#ifndef KVASIR_EVAL_TRAINING_PROBE_H_
#define KVASIR_EVAL_TRAINING_PROBE_H_

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "training/model_config.h"
#include "training/options.h"

namespace kvasir::eval {

struct TrainingProbe {
  double seconds_per_step = 0;
  // From a whole step; else from smaller ones, as a fixed part and one for each sequence.
  bool whole_step = false;
  double seconds_per_evaluation = 0;  // Of the whole held-out text; 0 without one.
};

// A few steps of one sequence, a few of a micro-batch, then, where one promises to take less than 2
// seconds, three whole ones; and a part of the held-out text. Everything is done on trainers of its
// own. Errors as Trainer::Make and Step. Single-threaded but for the team.
base::Result<TrainingProbe> ProbeTraining(const training::ModelConfig& config,
                                          const training::TrainOptions& options,
                                          std::span<const base::TokenId> text,
                                          std::span<const base::TokenId> held_out,
                                          base::ThreadTeam& team);

// The whole run: its steps, and an evaluation every eval_every of them and at the last.
double TrainingSeconds(const TrainingProbe& probe, std::uint64_t steps, std::uint64_t eval_every);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_TRAINING_PROBE_H_
