#include "eval/random_deepseek.h"

#include "eval/random_weights.h"

namespace kvasir::eval {

base::Result<std::unique_ptr<model::DeepseekModel>> MakeRandomDeepseek(
    const model::DeepseekConfig& config, std::uint64_t seed) {
  const auto checked = model::CheckConfig(config);
  KV_TRY(CheckRandomModel(checked, checked ? model::ParameterCount(config) : 0));
  return model::DeepseekModel::Make(config, RandomWeights(seed));
}

}  // namespace kvasir::eval
