// The axis of Verify in which the cache computes another function: every policy must keep the
// promise for its own.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "eval/verify_axes.h"
#include "eval/verify_policy.h"

namespace kvasir::eval {

// Sequences are short, since a policy that stores nothing computes each again at every step.
base::Result<void> RunPolicyAxis(const AxisTrial& trial) {
  constexpr std::size_t kSequences = 4;
  constexpr std::size_t kLongest = 96;
  constexpr std::size_t kAxes = 3;
  const std::optional<kvcache::CachePolicy> policy =
      DrawPolicy(trial.model.shape().Policy(), trial.random);
  std::vector<PlainSequence> world;
  for (const PlainSequence& plain : trial.world.first(std::min(kSequences, trial.world.size()))) {
    PlainSequence& ours = world.emplace_back();
    ours.tokens = plain.tokens;
    ours.tokens.resize(std::min(ours.tokens.size(), kLongest));
    ours.shared_prefix =
        std::min({plain.shared_prefix, ours.tokens.size(), world.front().tokens.size()});
    ours.ChooseRows(1, trial.random);
    KV_TRY(ours.RunPlainly(trial.model, policy));
  }
  std::vector<base::Result<void> (*)(const AxisTrial&)> axes = {
      RunKvCacheAxis, RunPrefillChunkAxis, RunBatchAxis, RunThreadsAxis,
      RunBlockAxis,   RunPlacementAxis,    RunForkAxis,  RunPrefixAxis,
      RunRestoreAxis, RunSimdAxis,         RunMixedAxis};
  trial.random.Shuffle(axes);
  axes.resize(kAxes);
  trial.comparer.CountAs(VerifyAxis::kPolicy, fmt::format("--kv \"{}\"", policy->Canonical()));
  const AxisTrial nested = {trial.model, world, trial.teams, trial.comparer, trial.random, policy};
  base::Result<void> done = base::Success();
  for (const auto& axis : axes) {
    if (done) done = axis(nested);
  }
  trial.comparer.CountAs(std::nullopt);
  return done;
}

}  // namespace kvasir::eval
