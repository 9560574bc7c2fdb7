#include "eval/training_speed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/token_id.h"
#include "eval/random_stream.h"
#include "eval/speed.h"
#include "training/trained_policy.h"
#include "training/trainer.h"

namespace kvasir::eval {
namespace {

using base::TokenId;

base::Result<std::vector<float>> GradientOf(const training::ModelConfig& config,
                                            const training::TrainOptions& options,
                                            const std::vector<TokenId>& text,
                                            base::ThreadTeam& team) {
  KV_TRY(const auto trainer, training::Trainer::Make(config, options, text, team));
  std::vector<float> gradient;
  KV_TRY(trainer->Gradient(gradient));
  return gradient;
}

}  // namespace

base::Result<TrainingSpeed> MeasureTraining(const training::ModelConfig& config,
                                            std::uint64_t sequences, std::uint64_t repetitions,
                                            base::ThreadTeam& team) {
  KV_CHECK(repetitions > 0);
  training::TrainOptions options;
  options.batch = sequences;
  options.shards = std::min(options.shards, sequences);
  options.steps = repetitions + 1;
  KV_TRY(training::CheckOptions(options));
  RandomStream random(/*seed=*/1);
  std::vector<TokenId> text(64 * config.context() + 1);
  for (TokenId& token : text) token = static_cast<TokenId>(random.Below(config.vocab()));

  training::TrainOptions singly = options;
  singly.micro_batch = 1;
  KV_TRY(const auto expected, GradientOf(config, singly, text, team));
  KV_TRY(const auto gradient, GradientOf(config, options, text, team));
  if (gradient.size() != expected.size() ||
      std::memcmp(gradient.data(), expected.data(), gradient.size() * sizeof(float)) != 0) {
    return base::MakeError(base::ErrorCode::kNumeric,
                           "the gradient changes with the sequences computed together: not timed");
  }

  KV_TRY(const auto trainer, training::Trainer::Make(config, options, text, team));
  KV_TRY(trainer->Step());
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < repetitions; ++i) {
    const Stopwatch watch;
    KV_TRY(trainer->Step());
    seconds.push_back(watch.Seconds());
  }
  const double step = Median(seconds);
  const training::NetworkPlan plan =
      training::PlanOf(config, training::TrainedPolicy(config, options.kv).value());
  const auto count = static_cast<double>(sequences);
  return TrainingSpeed{
      .ms_per_step = 1e3 * step,
      .tokens_per_s = count * static_cast<double>(config.context()) / step,
      .gflop_per_s = 1e-9 * count * training::StepFlops(plan) / step,
  };
}

}  // namespace kvasir::eval
