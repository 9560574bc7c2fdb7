#include "training/start_weights.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/hash.h"
#include "model/gpt2_model.h"
#include "model/llama_model.h"

namespace kvasir::training {

std::uint64_t StartWeights::Hash() const {
  std::uint64_t hash = 0;
  for (const model::TensorSpec& spec : config.Tensors()) {
    const std::vector<float> numbers = values(spec);
    hash = base::HashSpan64(std::span(numbers), hash);
  }
  return std::max<std::uint64_t>(hash, 1);
}

std::optional<StartWeights> StartWeightsOf(const model::Model& model) {
  const auto make = [](const auto& known) {
    return StartWeights{known.config(), [&known](const model::TensorSpec& spec) {
                          return known.TensorValues(spec);
                        }};
  };
  if (const auto* gpt2 = dynamic_cast<const model::Gpt2Model*>(&model)) return make(*gpt2);
  const auto* llama = dynamic_cast<const model::LlamaModel*>(&model);
  if (llama == nullptr || !ModelConfig(llama->config()).Check()) return std::nullopt;
  return make(*llama);
}

void TakeWeights(const StartWeights& weights, Trainer& trainer) {
  KV_CHECK(weights.config == trainer.config());
  for (const model::TensorSpec& spec : weights.config.Tensors()) {
    const std::vector<float> numbers = weights.values(spec);
    const ParameterSlice& slice = trainer.layout().Find(spec.name);
    KV_CHECK(slice.size == numbers.size());
    std::copy(numbers.begin(), numbers.end(), trainer.parameters().begin() + slice.begin);
  }
  trainer.ParametersChanged();
}

}  // namespace kvasir::training
