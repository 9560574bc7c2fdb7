// A whole training run: steps, evaluations, the best model and checkpoints on disk, progress by
// callback. Files are written whole or not at all, so a run killed at any moment loses at most the
// steps since its last checkpoint.
#ifndef KVASIR_TRAINING_RUN_H_
#define KVASIR_TRAINING_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/env.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tokenizer/vocabulary.h"
#include "training/trainer.h"

namespace kvasir::training {

struct RunOptions {
  std::string output;  // GGUF of the best model; of the last while none was measured.
  std::string name;    // general.name
  tensor::DType dtype = tensor::DType::kF32;
  std::string checkpoint_directory;  // Empty: no checkpoints.
  std::uint64_t checkpoint_every = 250;
  // Ends the run, as if it had no more steps, after so many measurements on schedule in a row
  // without a new best.
  std::optional<std::uint64_t> patience;
  std::optional<std::uint64_t> stop_at;     // Ends at this step as `stop` would.
  const std::atomic<bool>* stop = nullptr;  // Set by a signal: finish the step, save, return.
};

struct Progress {
  StepReport step;
  std::optional<Evaluation> evaluation;  // After this step, if one was made.
  bool is_best = false;                  // That evaluation is the lowest so far.
};

struct RunResult {
  std::uint64_t steps_done = 0;
  bool stopped = false;  // By RunOptions::stop or stop_at, before the last step.
  bool early = false;    // By RunOptions::patience, likewise.
};

// Name of the one checkpoint file in a directory.
std::string CheckpointPath(const std::string& directory);

// Runs until options().steps and writes the output, whatever was there before. best.held_out may be
// empty; else it must hold at least 2 tokens; it is measured every best.eval_every steps and at the
// last one, and never because a run is stopped, so that stopping changes no result. Errors of files
// end the run after a last try to save the checkpoint. kUsage if the trainer is beyond
// options().steps; kNumeric, naming the step, for a loss that is not finite.
base::Result<RunResult> RunTraining(Trainer& trainer, BestModel& best, base::Env& env,
                                    const tokenizer::VocabularySpec& vocabulary,
                                    const RunOptions& options,
                                    const std::function<void(const Progress&)>& on_step);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_RUN_H_
