// Which cache a model is trained for: `train --kv`.
#ifndef KVASIR_TRAINING_TRAINED_POLICY_H_
#define KVASIR_TRAINING_TRAINED_POLICY_H_

#include <string_view>

#include "base/result.h"
#include "kvcache/cache_policy.h"
#include "training/model_config.h"

namespace kvasir::training {

// What queries of this model see, and rounded how, with a cache of this SPEC (cache_policy.h;
// empty: the full one), the model's own windows included. kUsage for what is no SPEC of this model,
// or has sinks, which cannot be trained for. Requires a checked config.
base::Result<kvcache::CachePolicy> TrainedPolicy(const ModelConfig& config, std::string_view spec);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_TRAINED_POLICY_H_
