#include "cli/train_start.h"

#include <optional>
#include <utility>

namespace kvasir::cli {

base::Result<std::unique_ptr<TrainStart>> OpenTrainStart(base::Env& env, const std::string& path) {
  KV_TRY(model::LoadedModel loaded, model::LoadModel(env, path));
  std::optional<training::StartWeights> weights = training::StartWeightsOf(*loaded.model);
  if (!weights) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "'{}' is a model of {}, which cannot be trained; gpt2 and llama can",
                           path, loaded.model->shape().architecture);
  }
  return std::make_unique<TrainStart>(TrainStart{std::move(loaded), *std::move(weights)});
}

}  // namespace kvasir::cli
