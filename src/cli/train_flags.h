// The flags of kvasir train, and what they alone tell.
#ifndef KVASIR_CLI_TRAIN_FLAGS_H_
#define KVASIR_CLI_TRAIN_FLAGS_H_

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/train_corpus.h"
#include "cli/train_files.h"
#include "cli/train_preset.h"
#include "cli/train_samples.h"
#include "cli/train_shape.h"
#include "tensor/dtype.h"
#include "training/options.h"
#include "training/run.h"

namespace kvasir::cli {

struct TrainFlags {
  std::vector<std::string> texts;
  std::string output, held_out, checkpoint, log, name, dtype = "f32";
  VocabularyChoice vocabulary;
  TextEncoding encoding = TextEncoding::kAuto;
  std::string encoding_name;  // As it was given; empty: it was not.
  bool resume = false, json = false, estimate = false, no_report = false;
  std::string init, report, sample_prompt;
  std::optional<Preset> preset;
  std::optional<std::uint64_t> sample_every, patience;
  std::uint64_t sample_tokens = 128;
  std::set<std::string> given;  // Names of the options that were: "--layers".
  std::uint64_t threads = 0;    // 0: the physical cores.
  TrainShape shape;
  training::TrainOptions options;
  std::optional<double> held_out_share;
  std::uint64_t eval_every = 250, checkpoint_every = 250;
  std::optional<std::uint64_t> stop_at;
  std::optional<std::uint64_t> shards;

  TrainPaths Paths() const {
    return {.texts = texts,
            .held_out = held_out,
            .output = output,
            .log = log.empty() ? output + ".log" : log,
            .checkpoint = checkpoint,
            .report = no_report        ? std::string()
                      : report.empty() ? output + ".report"
                                       : report,
            .init = init};
  }
  bool Reports() const { return !no_report; }
  std::string Name() const;  // general.name
  tensor::DType FileType() const;
  SampleSettings Samples() const { return {.prompt = sample_prompt, .tokens = sample_tokens}; }
  training::RunOptions Run(const std::atomic<bool>* stop) const;
  TrainSources Sources() const {
    return {texts, held_out, held_out_share, options.seed, shape.context, encoding, vocabulary};
  }
};

// Fills in what the preset says and no flag does; a line that tells what.
std::string ApplyPreset(TrainFlags& flags, std::uint64_t text_tokens, std::uint64_t vocabulary);

// A command that repeats the run: with every setting that its bits depend on, but the model's shape
// where that is the one of --init.
std::string RepeatCommand(const TrainFlags& flags);

// The flags must outlive the command.
void AddTrainFlags(CLI::App* command, TrainFlags& flags);

// Fills in what follows from other flags, and checks what they alone tell, before any file is
// touched: kUsage naming the flag, its value and what is allowed.
base::Result<void> CheckTrainFlags(TrainFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_FLAGS_H_
