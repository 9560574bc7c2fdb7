// The flags of kvasir train, and what they alone tell.
#ifndef KVASIR_CLI_TRAIN_FLAGS_H_
#define KVASIR_CLI_TRAIN_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/train_corpus.h"
#include "cli/train_files.h"
#include "cli/train_shape.h"
#include "training/options.h"

namespace kvasir::cli {

struct TrainFlags {
  std::vector<std::string> texts;
  std::string output, held_out, checkpoint, log, name, dtype = "f32";
  VocabularyChoice vocabulary;
  TextEncoding encoding = TextEncoding::kAuto;
  bool resume = false, json = false;
  std::uint64_t threads = 0;  // 0: the physical cores.
  TrainShape shape;
  training::TrainOptions options;
  std::optional<double> held_out_share;
  std::uint64_t eval_every = 250, checkpoint_every = 250;
  std::optional<std::uint64_t> stop_at;
  std::optional<std::uint64_t> shards;

  TrainPaths Paths() const {
    return {texts, held_out, output, log.empty() ? output + ".log" : log, checkpoint};
  }
  TrainSources Sources() const {
    return {texts, held_out, held_out_share, options.seed, shape.context, encoding, vocabulary};
  }
};

// The flags must outlive the command.
void AddTrainFlags(CLI::App* command, TrainFlags& flags);

// Fills in what follows from other flags, and checks what they alone tell, before any file is
// touched: kUsage naming the flag, its value and what is allowed.
base::Result<void> CheckTrainFlags(TrainFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_FLAGS_H_
