#include "training/schedule.h"

#include <algorithm>

#include "kernels/scalar_math.h"
#include "training/options.h"

namespace kvasir::training {
namespace {

// How far from `begin` to the end of the run, 0 to 1.
double Progress(const TrainOptions& options, std::uint64_t step, double begin) {
  const double length = std::max(1.0, static_cast<double>(options.steps) - begin);
  return std::clamp((static_cast<double>(step) - begin) / length, 0.0, 1.0);
}

}  // namespace

double LearningRate(const TrainOptions& options, std::uint64_t step) {
  const auto s = static_cast<double>(step);
  const auto warmup = static_cast<double>(options.warmup);
  if (s < warmup) return options.learning_rate * (s + 1) / (warmup + 1);
  double share = 0;  // Of the way from final_rate to the peak.
  if (options.schedule == Schedule::kCosine) {
    const double progress = Progress(options, step, warmup);
    share = 0.5 * (1.0 + kernels::CosF64(3.141592653589793 * progress));
  } else {
    const auto steps = static_cast<double>(options.steps);
    share = 1.0 - Progress(options, step, std::max(warmup, steps * (1.0 - options.decay_share)));
  }
  return options.learning_rate * (options.final_rate + (1.0 - options.final_rate) * share);
}

}  // namespace kvasir::training
