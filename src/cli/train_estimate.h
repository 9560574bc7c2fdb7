// What a training run will take, told before it starts.
#ifndef KVASIR_CLI_TRAIN_ESTIMATE_H_
#define KVASIR_CLI_TRAIN_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/thread_team.h"
#include "cli/train_corpus.h"
#include "tensor/dtype.h"
#include "training/model_config.h"
#include "training/options.h"

namespace kvasir::cli {

// What the estimate is of.
struct PlannedRun {
  const training::ModelConfig& config;
  const training::TrainOptions& options;
  const TrainCorpus& corpus;
  std::uint64_t eval_every = 1;
  std::uint64_t threads = 1;
  bool checkpoints = false;
  bool samples = false;  // A model of its own that writes while it is trained, or at the end.
  tensor::DType dtype = tensor::DType::kF32;
};

// Most bytes that the run takes at a time; nothing if they do not fit 64 bits.
std::optional<std::uint64_t> PlannedBytes(const PlannedRun& run);

// kExhausted, naming both, if this machine has less memory than the run takes.
base::Result<void> CheckPlannedMemory(const PlannedRun& run);

// "gpt2, 4 layers x 128 channels, 4 heads, context 128"
std::string ShapeText(const training::ModelConfig& config);

// Measures a few steps (eval/training_probe.h) and prints what the run takes: time, memory, files,
// cache bytes a token, tokens a parameter; with json as one document.
base::Result<void> PrintEstimate(const PlannedRun& run, base::ThreadTeam& team, bool json);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_ESTIMATE_H_
