// The flags of kvasir train that say what model it is.
#ifndef KVASIR_CLI_TRAIN_SHAPE_H_
#define KVASIR_CLI_TRAIN_SHAPE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "training/model_config.h"

namespace kvasir::cli {

struct TrainShape {
  std::string arch = "gpt2";
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::optional<std::uint64_t> kv_heads;  // As many as heads.
  std::uint64_t dim = 128;
  std::optional<std::uint64_t> ffn;
  std::uint64_t context = 128;
  double rope_base = 0;  // 0: not given
  std::string window;    // N[,PATTERN]; empty: none
  bool tied = false;
};

void AddShapeFlags(CLI::App* command, TrainShape& shape);

// The model of these flags and a vocabulary of this size. kUsage naming the flag, its value and
// what is allowed, also for a flag that the architecture has no use for.
base::Result<training::ModelConfig> MakeModelConfig(const TrainShape& shape, std::uint64_t vocab);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_SHAPE_H_
