#include "eval/verify.h"

#include "eval/random_stream.h"
#include "eval/verify_axes.h"
#include "eval/verify_runner.h"
#include "eval/verify_world.h"
#include "kernels/targets.h"

namespace kvasir::eval {
namespace {

using AxisFunction = base::Result<void> (*)(const AxisTrial&);

struct AxisEntry {
  std::string_view name;
  AxisFunction run;  // Null: needs more than a trial.
};

// By VerifyAxis.
constexpr std::array<AxisEntry, kVerifyAxes> kAxes = {{{"kv_cache", RunKvCacheAxis},
                                                       {"prefill_chunk", RunPrefillChunkAxis},
                                                       {"batch", RunBatchAxis},
                                                       {"threads", RunThreadsAxis},
                                                       {"block", RunBlockAxis},
                                                       {"placement", RunPlacementAxis},
                                                       {"fork", RunForkAxis},
                                                       {"prefix", RunPrefixAxis},
                                                       {"restore", RunRestoreAxis},
                                                       {"simd", RunSimdAxis},
                                                       {"mixed", RunMixedAxis},
                                                       {"policy", RunPolicyAxis},
                                                       {"trainer", nullptr}}};

// The world's draws, and each axis's, are numbers of streams of their own: an axis draws the same
// whatever the others do.
RandomStream StreamFor(std::uint64_t seed, std::uint64_t trial, std::size_t purpose) {
  RandomStream trials(seed, static_cast<std::uint32_t>(purpose));
  return RandomStream(trials.Next() + trial * 0x9E3779B97F4A7C15ull,
                      static_cast<std::uint32_t>(purpose));
}

}  // namespace

std::string_view VerifyAxisName(VerifyAxis axis) {
  return kAxes[static_cast<std::size_t>(axis)].name;
}

std::uint64_t VerifyReport::comparisons() const {
  std::uint64_t sum = 0;
  for (const AxisCount& count : axes) sum += count.comparisons;
  return sum;
}

std::uint64_t VerifyReport::mismatches() const {
  std::uint64_t sum = 0;
  for (const AxisCount& count : axes) sum += count.mismatches;
  return sum;
}

base::Result<VerifyReport> Verify(const model::Model& model, const VerifyOptions& options) {
  if (options.trials == 0) {
    return base::MakeError(base::ErrorCode::kUsage, "0 trials are not allowed: at least 1");
  }
  kernels::UseBestTarget();
  VerifyReport report;
  report.trainer_checked =
      options.trainer != nullptr && (!options.policy || options.policy->IsFull());
  RowComparer comparer(report, model.shape().vocab);
  TeamSet teams;
  while (report.trials < options.trials) {
    RandomStream world_random = StreamFor(options.seed, report.trials, kVerifyAxes);
    std::vector<PlainSequence> world =
        DrawWorld(model.shape(), world_random, /*full=*/report.trials % 8 == 0);
    for (PlainSequence& sequence : world) {
      KV_TRY(sequence.RunPlainly(model, options.policy));
    }
    for (std::size_t i = 0; i < kVerifyAxes; ++i) {
      RandomStream random = StreamFor(options.seed, report.trials, i);
      const AxisTrial trial = {model, world, teams, comparer, random, options.policy};
      if (kAxes[i].run != nullptr) {
        KV_TRY(kAxes[i].run(trial));
      } else if (options.trainer && (!options.policy || options.policy->IsFull())) {
        KV_TRY(RunTrainerAxis(trial, options.trainer));
      }
    }
    ++report.trials;
    if (options.after_trial) options.after_trial(report.trials);
  }
  return report;
}

}  // namespace kvasir::eval
