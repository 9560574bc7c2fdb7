// The model that a training run goes on from.
#ifndef KVASIR_CLI_TRAIN_START_H_
#define KVASIR_CLI_TRAIN_START_H_

#include <memory>
#include <string>

#include "base/env.h"
#include "base/result.h"
#include "model/model_file.h"
#include "training/start_weights.h"

namespace kvasir::cli {

struct TrainStart {
  model::LoadedModel loaded;
  training::StartWeights weights;  // Reads from it.
};

// Errors as LoadModel; kBadData naming the architecture of a model that cannot be trained.
base::Result<std::unique_ptr<TrainStart>> OpenTrainStart(base::Env& env, const std::string& path);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_START_H_
