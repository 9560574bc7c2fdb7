#include "eval/random_gpt2.h"

#include "eval/random_weights.h"

namespace kvasir::eval {

base::Result<std::unique_ptr<model::Gpt2Model>> MakeRandomGpt2(const model::Gpt2Config& config,
                                                               std::uint64_t seed,
                                                               tensor::DType dtype) {
  const auto checked = model::CheckConfig(config);
  KV_TRY(CheckRandomModel(checked, checked ? model::ParameterCount(config) : 0));
  return model::Gpt2Model::Make(config, RandomWeights(seed, dtype));
}

}  // namespace kvasir::eval
