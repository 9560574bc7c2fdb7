#include "eval/trainer_forward.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "model/gpt2_model.h"
#include "training/trainer.h"

namespace kvasir::eval {
namespace {

// The trainer and the text it wants, though nothing is trained.
struct TrainerState {
  std::vector<base::TokenId> text;
  std::unique_ptr<training::Trainer> trainer;
};

}  // namespace

base::Result<SequenceForward> MakeTrainerForward(const model::Model& model,
                                                 base::ThreadTeam& team) {
  const auto* gpt2 = dynamic_cast<const model::Gpt2Model*>(&model);
  if (gpt2 == nullptr || model.shape().rounded()) return SequenceForward();
  auto state = std::make_shared<TrainerState>();
  state->text.assign(gpt2->config().context + 1, 0);
  KV_TRY(state->trainer,
         training::Trainer::Make(gpt2->config(), {.batch = 1, .shards = 1, .micro_batch = 1},
                                 state->text, team));
  training::Trainer& trainer = *state->trainer;
  for (const model::TensorSpec& spec : model::Gpt2Tensors(gpt2->config())) {
    const std::vector<float> values = gpt2->TensorValues(spec);
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
