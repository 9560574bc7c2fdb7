// The arrangements of one trial of Verify, one function an axis.
#ifndef KVASIR_EVAL_VERIFY_AXES_H_
#define KVASIR_EVAL_VERIFY_AXES_H_

#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "eval/model_cache.h"
#include "eval/random_stream.h"
#include "eval/verify_runner.h"

namespace kvasir::eval {

// What an arrangement works with. The random stream is the axis's own.
struct AxisTrial {
  const model::Model& model;
  std::span<const PlainSequence> world;  // At least 2.
  TeamSet& teams;
  RowComparer& comparer;
  RandomStream& random;
  const std::optional<kvcache::CachePolicy>& policy;  // That of the plain run.

  // A cache for this model and policy.
  base::Result<std::unique_ptr<kvcache::BlockPool>> Cache(ModelCacheOptions options) const {
    options.policy = policy;
    return MakeModelCache(model.shape(), options);
  }
};

// Every row compared is a row of the plain run; each function errs only as the model errs.
base::Result<void> RunKvCacheAxis(const AxisTrial& trial);
base::Result<void> RunPrefillChunkAxis(const AxisTrial& trial);
base::Result<void> RunBatchAxis(const AxisTrial& trial);
base::Result<void> RunThreadsAxis(const AxisTrial& trial);
base::Result<void> RunBlockAxis(const AxisTrial& trial);
base::Result<void> RunPlacementAxis(const AxisTrial& trial);
base::Result<void> RunForkAxis(const AxisTrial& trial);
base::Result<void> RunPrefixAxis(const AxisTrial& trial);
base::Result<void> RunRestoreAxis(const AxisTrial& trial);
base::Result<void> RunSimdAxis(const AxisTrial& trial);
base::Result<void> RunMixedAxis(const AxisTrial& trial);
base::Result<void> RunPolicyAxis(const AxisTrial& trial);
base::Result<void> RunTrainerAxis(const AxisTrial& trial, const SequenceForward& trainer);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERIFY_AXES_H_
