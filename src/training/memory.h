// What memory a training run takes, known before any is taken.
#ifndef KVASIR_TRAINING_MEMORY_H_
#define KVASIR_TRAINING_MEMORY_H_

#include <cstdint>
#include <optional>

#include "training/model_config.h"
#include "training/options.h"

namespace kvasir::training {

// What besides config and options decides it.
struct MemoryUse {
  std::uint64_t threads = 1;
  std::uint64_t text_tokens = 0;  // Held-out ones included.
  bool held_out = false;          // The best model is kept.
  bool checkpoints = false;
};

// Most bytes that a trainer of these and its files take at a time, but for a few KiB: the arrays of
// Trainer, Network and BestModel, the text's ids, and the copy of a file that is being written.
// Nothing if they do not fit 64 bits. Requires a config that
// passed Check and an options.kv that TrainedPolicy accepts.
std::optional<std::uint64_t> TrainingBytes(const ModelConfig& config, const TrainOptions& options,
                                           const MemoryUse& use);

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_MEMORY_H_
