// kvasir train: a model from a person's own text.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/machine_memory.h"
#include "cli/train_corpus.h"
#include "cli/train_files.h"
#include "cli/train_flags.h"
#include "cli/train_progress.h"
#include "training/memory.h"
#include "training/run.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks the run to save and end; the second ends it at once.
void OnSignal(int number) {
  if (stop_requested.exchange(true)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

// Hours later would be too late to learn that an output cannot be written.
base::Result<void> PrepareFiles(base::Env& env, const TrainFlags& flags) {
  if (!flags.checkpoint.empty()) {
    const std::string last = training::CheckpointPath(flags.checkpoint);
    if (!flags.resume && env.Exists(last)) {
      return WithHint(MakeError(ErrorCode::kUsage, "'{}' exists and would be lost", last),
                      "add --resume to go on with that run, or name another directory");
    }
    if (flags.resume && !env.Exists(last)) {
      return MakeError(ErrorCode::kIo, "there is no checkpoint '{}' to resume from", last);
    }
    KV_TRY(env.MakeDirectories(flags.checkpoint));
    KV_TRY(CheckWritable(last));
    RemoveStaleTemporaries(last);
  }
  KV_TRY(CheckWritable(flags.output));
  RemoveStaleTemporaries(flags.output);
  return base::Success();
}

// Refuses what this machine cannot hold before it fills up.
base::Result<void> CheckMemory(const TrainFlags& flags, const training::ModelConfig& config,
                               const TrainCorpus& corpus, std::size_t threads) {
  const training::MemoryUse use{.threads = threads,
                                .text_tokens = corpus.text.size() + corpus.held_out.size(),
                                .held_out = !corpus.held_out.empty(),
                                .checkpoints = !flags.checkpoint.empty()};
  const auto needed = training::TrainingBytes(config, flags.options, use);
  const std::uint64_t there = MachineMemory();
  if (needed && *needed <= there) return base::Success();
  constexpr double kMiB = 1 << 20;
  return WithHint(
      MakeError(ErrorCode::kExhausted, "training this takes {} MiB of memory; there are {:.0f} MiB",
                needed ? fmt::format("{:.0f}", std::ceil(static_cast<double>(*needed) / kMiB))
                       : "more than 2^44",
                static_cast<double>(there) / kMiB),
      "lower --micro-batch (the result stays the same), --context, --layers, --dim or --ffn");
}

// Not by {fmt}, which throws where stderr takes no more.
void Tell(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

void PrintResult(const TrainFlags& flags, const training::Trainer& trainer,
                 const training::BestModel& best, const training::RunResult& result) {
  const std::uint64_t parameters = trainer.config().ParameterCount();
  if (flags.json) {
    nlohmann::ordered_json json{{"output", flags.output},
                                {"seed", flags.options.seed},
                                {"steps", result.steps_done},
                                {"stopped", result.stopped},
                                {"vocab", trainer.config().vocab()},
                                {"parameters", parameters}};
    if (best.measured()) {
      json["held_out_nll"] = best.loss;
      json["best_step"] = best.step;
    }
    PrintJson(json);
    return;
  }
  fmt::print("{} {}: {} parameters, vocabulary {}, {} steps",
             result.stopped ? "stopped" : "trained", flags.output, parameters,
             trainer.config().vocab(), result.steps_done);
  if (best.measured()) {
    fmt::print(", best held-out loss {:.5f} nats per token (step {})", best.loss, best.step);
  } else if (!best.held_out.empty()) {
    fmt::print(", not yet measured on held-out text: these are the last weights, not the best");
  }
  fmt::print("\n");
  if (result.stopped && !flags.checkpoint.empty()) fmt::print("go on with --resume\n");
}

training::RunOptions MakeRunOptions(const TrainFlags& flags) {
  training::RunOptions run;
  run.output = flags.output;
  run.name = flags.name.empty() ? std::filesystem::path(flags.output).stem().string() : flags.name;
  run.dtype = flags.dtype == "f16"    ? tensor::DType::kF16
              : flags.dtype == "bf16" ? tensor::DType::kBF16
                                      : tensor::DType::kF32;
  run.checkpoint_directory = flags.checkpoint;
  run.checkpoint_every = flags.checkpoint_every;
  run.stop = &stop_requested;
  run.stop_at = flags.stop_at;
  return run;
}

// Signals that ask to end, but those the caller had ignored (nohup, a shell's background job).
void HandleSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal(number, OnSignal) == SIG_IGN) signal(number, SIG_IGN);
  }
}

base::Result<int> Train(TrainFlags flags) {
  base::Env& env = base::Env::Default();
  KV_TRY(CheckTrainFlags(flags));
  KV_TRY(const TrainCorpus corpus, ReadTrainCorpus(env, flags.Sources()));
  KV_TRY(const auto config, MakeModelConfig(flags.shape, corpus.vocabulary.pieces.size()));
  const std::size_t threads = flags.threads == 0 ? base::ThreadTeam::PhysicalCores()
                                                 : static_cast<std::size_t>(flags.threads);
  KV_TRY(CheckMemory(flags, config, corpus, threads));
  KV_TRY(PrepareFiles(env, flags));
  KV_TRY(const auto team, base::ThreadTeam::Make(threads));
  KV_TRY(auto trainer, training::Trainer::Make(config, flags.options, corpus.text, *team));
  training::BestModel best;
  best.held_out = corpus.held_out;
  best.eval_every = flags.eval_every;
  if (flags.resume) {
    KV_TRY(trainer->LoadCheckpoint(env, training::CheckpointPath(flags.checkpoint), best));
    if (trainer->steps_done() > flags.options.steps) {
      return MakeError(ErrorCode::kUsage, "--steps {} is not allowed: the checkpoint has {} steps",
                       flags.options.steps, trainer->steps_done());
    }
  }
  KV_TRY(auto progress, TrainProgress::Open(flags.Paths().log, flags.resume, *trainer));
  if (flags.held_out.empty()) Tell(DescribeHeldOut(corpus));
  HandleSignals();
  auto result = training::RunTraining(*trainer, best, env, corpus.vocabulary, MakeRunOptions(flags),
                                      [&](const training::Progress& p) { progress->Show(p); });
  const auto logged = progress->Finish();
  if (!result) return result.error();
  PrintResult(flags, *trainer, best, result.value());
  if (!logged) return logged.error();
  return 0;
}

}  // namespace

void AddTrainCommand(CommandSet& commands) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = commands.Add(
      "train", "Train a model on your own text",
      "kvasir train book.txt --val rest.txt -o book.gguf --steps 2000 --checkpoint book.ckpt");
  AddTrainFlags(command, *flags);
  commands.OnRun(command, [flags] { return Train(*flags); });
}

}  // namespace kvasir::cli
