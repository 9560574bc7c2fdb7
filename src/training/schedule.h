// How the learning rate goes up and down over a run.
#ifndef KVASIR_TRAINING_SCHEDULE_H_
#define KVASIR_TRAINING_SCHEDULE_H_

#include <cstdint>

namespace kvasir::training {

struct TrainOptions;

enum class Schedule {
  kCosine,
  // Warm-up, stable, decay (Hu et al. 2024, "MiniCPM"): the peak rate until the last decay_share of
  // the steps, then a straight line down. Up to there no step depends on how long the run is: one
  // that is made longer before its decay begins is the one that was planned so long.
  kWsd,
};

// Learning rate of a step (from 0): a straight line up over the warm-up, then as the schedule has
// it, down to final_rate of the peak at the end of the run.
double LearningRate(const TrainOptions& options, std::uint64_t step);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_SCHEDULE_H_
