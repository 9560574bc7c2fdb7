#include "eval/trainer_forward.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "training/start_weights.h"
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
  const std::optional<training::StartWeights> weights = training::StartWeightsOf(model);
  if (!weights || model.shape().rounded()) return SequenceForward();
  auto state = std::make_shared<TrainerState>();
  state->text.assign(weights->config.context() + 1, 0);
  KV_TRY(state->trainer,
         training::Trainer::Make(weights->config, {.batch = 1, .shards = 1, .micro_batch = 1},
                                 state->text, team));
  training::TakeWeights(*weights, *state->trainer);
  return SequenceForward([state](std::span<const base::TokenId> tokens,
                                 std::span<float> logits) -> base::Result<void> {
    const std::vector<float> rows = state->trainer->Logits(tokens);
    KV_CHECK(rows.size() == logits.size());
    std::copy(rows.begin(), rows.end(), logits.begin());
    return base::Success();
  });
}

}  // namespace kvasir::eval
