#include "eval/random_llama.h"

#include "eval/random_weights.h"

namespace kvasir::eval {

base::Result<std::unique_ptr<model::LlamaModel>> MakeRandomLlama(const model::LlamaConfig& config,
                                                                 std::uint64_t seed,
                                                                 tensor::DType dtype) {
  const auto checked = model::CheckConfig(config);
  KV_TRY(CheckRandomModel(checked, checked ? model::ParameterCount(config) : 0));
  return model::LlamaModel::Make(config, RandomWeights(seed, dtype));
}

}  // namespace kvasir::eval
