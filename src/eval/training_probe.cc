#include "eval/training_probe.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "eval/speed.h"
#include "training/trainer.h"

namespace kvasir::eval {
namespace {

constexpr double kWholeStepSeconds = 2;  // A whole step that promises to take longer is not taken.
constexpr int kRepetitions = 3;

struct Probed {
  double seconds = 0;  // A step; the median.
  double seconds_per_held_out_token = 0;
};

base::Result<Probed> ProbeSteps(const training::ModelConfig& config, training::TrainOptions options,
                                std::uint64_t batch, std::span<const base::TokenId> text,
                                std::span<const base::TokenId> held_out, base::ThreadTeam& team) {
  options.batch = batch;
  options.shards = std::min(options.shards, batch);
  KV_TRY(const auto trainer, training::Trainer::Make(config, options, text, team));
  KV_TRY(trainer->Step());  // The first touches memory for the first time.
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    const Stopwatch watch;
    KV_TRY(trainer->Step());
    seconds.push_back(watch.Seconds());
  }
  Probed probed{.seconds = Median(seconds)};
  const std::size_t part = std::min<std::size_t>(
      held_out.size(), std::min(batch, options.micro_batch) * config.context() + 1);
  if (part >= 2) {
    const Stopwatch watch;
    trainer->Evaluate(held_out.first(part));
    probed.seconds_per_held_out_token = watch.Seconds() / static_cast<double>(part - 1);
  }
  return probed;
}

}  // namespace

base::Result<TrainingProbe> ProbeTraining(const training::ModelConfig& config,
                                          const training::TrainOptions& options,
                                          std::span<const base::TokenId> text,
                                          std::span<const base::TokenId> held_out,
                                          base::ThreadTeam& team) {
  const std::uint64_t several =
      std::min(options.batch, std::max<std::uint64_t>(2, options.micro_batch));
  KV_TRY(const Probed one, ProbeSteps(config, options, 1, text, {}, team));
  KV_TRY(const Probed some, ProbeSteps(config, options, several, text, held_out, team));
  const double sequence =
      several == 1 ? one.seconds
                   : std::max(0.0, some.seconds - one.seconds) / static_cast<double>(several - 1);
  TrainingProbe probe;
  probe.seconds_per_step = some.seconds + sequence * static_cast<double>(options.batch - several);
  probe.seconds_per_evaluation = some.seconds_per_held_out_token *
                                 static_cast<double>(held_out.empty() ? 0 : held_out.size() - 1);
  probe.whole_step = options.batch == several;
  if (!probe.whole_step && probe.seconds_per_step < kWholeStepSeconds) {
    KV_TRY(const Probed whole, ProbeSteps(config, options, options.batch, text, {}, team));
    probe.seconds_per_step = whole.seconds;
    probe.whole_step = true;
  }
  return probe;
}

double TrainingSeconds(const TrainingProbe& probe, std::uint64_t steps, std::uint64_t eval_every) {
  const std::uint64_t evaluations = (steps + eval_every - 1) / eval_every;
  return static_cast<double>(steps) * probe.seconds_per_step +
         static_cast<double>(evaluations) * probe.seconds_per_evaluation;
}

}  // namespace kvasir::eval
