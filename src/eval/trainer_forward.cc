#include "eval/trainer_forward.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/gpt2_model.h"
#include "model/llama_model.h"
#include "training/trainer.h"

namespace kvasir::eval {
namespace {

// The trainer and the text it wants, though nothing is trained.
struct TrainerState {
  std::vector<base::TokenId> text;
  std::unique_ptr<training::Trainer> trainer;
};

// A model whose architecture the trainer knows.
struct TrainedModel {
  training::ModelConfig config;
  std::function<std::vector<float>(const model::TensorSpec&)> values;
};

std::optional<TrainedModel> Trained(const model::Model& model) {
  const auto make = [](const auto& known) {
    return TrainedModel{known.config(), [&known](const model::TensorSpec& spec) {
                          return known.TensorValues(spec);
                        }};
  };
  if (const auto* gpt2 = dynamic_cast<const model::Gpt2Model*>(&model)) return make(*gpt2);
  const auto* llama = dynamic_cast<const model::LlamaModel*>(&model);
  if (llama == nullptr) return std::nullopt;
  const training::ModelConfig config(llama->config());
  if (!config.Check()) return std::nullopt;  // Of a family that is not trained.
  return make(*llama);
}

}  // namespace

base::Result<SequenceForward> MakeTrainerForward(const model::Model& model,
                                                 base::ThreadTeam& team) {
  const std::optional<TrainedModel> trained = Trained(model);
  if (!trained || model.shape().rounded()) return SequenceForward();
  auto state = std::make_shared<TrainerState>();
  state->text.assign(trained->config.context() + 1, 0);
  KV_TRY(state->trainer,
         training::Trainer::Make(trained->config, {.batch = 1, .shards = 1, .micro_batch = 1},
                                 state->text, team));
  training::Trainer& trainer = *state->trainer;
  for (const model::TensorSpec& spec : trained->config.Tensors()) {
    const std::vector<float> values = trained->values(spec);
    const training::ParameterSlice& slice = trainer.layout().Find(spec.name);
    KV_CHECK(slice.size == values.size());
    std::copy(values.begin(), values.end(), trainer.parameters().begin() + slice.begin);
  }
  trainer.ParametersChanged();
  return SequenceForward([state](std::span<const base::TokenId> tokens,
                                 std::span<float> logits) -> base::Result<void> {
    const std::vector<float> rows = state->trainer->Logits(tokens);
    KV_CHECK(rows.size() == logits.size());
    std::copy(rows.begin(), rows.end(), logits.begin());
    return base::Success();
  });
}

}  // namespace kvasir::eval
