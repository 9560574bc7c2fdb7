// kvasir train: a model from a person's own text.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
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
#include "cli/number_flags.h"
#include "cli/train_corpus.h"
#include "cli/train_files.h"
#include "cli/train_progress.h"
#include "kernels/attention.h"
#include "training/memory.h"
#include "training/run.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

struct TrainFlags {
  std::vector<std::string> texts;
  std::string output, held_out, checkpoint, log, name, dtype = "f32", arch = "gpt2";
  TrainPaths Paths() const {
    return {texts, held_out, output, log.empty() ? output + ".log" : log, checkpoint};
  }
  std::string tokenizer = "char";
  bool resume = false, json = false;
  std::uint64_t threads = 0;
  model::Gpt2Config config;
  training::TrainOptions options;
  std::uint64_t eval_every = 250, checkpoint_every = 250;
  std::optional<std::uint64_t> stop_at;
  std::optional<std::uint64_t> feed_forward, shards;
};

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks the run to save and end; the second ends it at once.
void OnSignal(int number) {
  if (stop_requested.exchange(true)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

// What the flags alone tell, before any file is touched.
base::Result<void> CheckFlags(const TrainFlags& flags) {
  KV_TRY(training::CheckOptions(flags.options));
  const model::Gpt2Config& config = flags.config;
  if (config.embedding % config.heads != 0) {
    return MakeError(ErrorCode::kUsage, "--dim {} is not a multiple of --heads {}",
                     config.embedding, config.heads);
  }
  if (config.head_dim() > kernels::kMaxHeadDim) {
    return MakeError(ErrorCode::kUsage,
                     "--dim {} with --heads {} makes {} channels a head; allowed are 1 to {}",
                     config.embedding, config.heads, config.head_dim(), kernels::kMaxHeadDim);
  }
  if (flags.resume && flags.checkpoint.empty()) {
    return MakeError(ErrorCode::kUsage, "--resume needs --checkpoint DIR to resume from");
  }
  return CheckDistinct(flags.Paths());
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
base::Result<void> CheckMemory(const TrainFlags& flags, const TrainCorpus& corpus,
                               std::size_t threads) {
  const training::MemoryUse use{.threads = threads,
                                .text_tokens = corpus.text.size() + corpus.held_out.size(),
                                .held_out = !corpus.held_out.empty(),
                                .checkpoints = !flags.checkpoint.empty()};
  const auto needed = training::TrainingBytes(flags.config, flags.options, use);
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

void PrintResult(const TrainFlags& flags, const training::Trainer& trainer,
                 const training::BestModel& best, const training::RunResult& result) {
  const std::uint64_t parameters = model::ParameterCount(trainer.config());
  if (flags.json) {
    nlohmann::ordered_json json{{"output", flags.output},          {"seed", flags.options.seed},
                                {"steps", result.steps_done},      {"stopped", result.stopped},
                                {"vocab", trainer.config().vocab}, {"parameters", parameters}};
    if (best.measured()) {
      json["held_out_nll"] = best.loss;
      json["best_step"] = best.step;
    }
    PrintJson(json);
    return;
  }
  fmt::print("{} {}: {} parameters, vocabulary {}, {} steps",
             result.stopped ? "stopped" : "trained", flags.output, parameters,
             trainer.config().vocab, result.steps_done);
  if (best.measured()) {
    fmt::print(", best held-out loss {:.5f} nats per token (step {})", best.loss, best.step);
  } else if (!best.held_out.empty()) {
    fmt::print(", not yet measured on --val: these are the last weights, not the best");
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
  flags.config.feed_forward = flags.feed_forward.value_or(4 * flags.config.embedding);
  flags.options.shards = flags.shards.value_or(std::min(flags.options.shards, flags.options.batch));
  KV_TRY(CheckFlags(flags));
  KV_TRY(const TrainCorpus corpus, ReadTrainCorpus(env, flags.texts, flags.held_out));
  flags.config.vocab = corpus.vocabulary.pieces.size();
  const std::size_t threads = flags.threads == 0 ? base::ThreadTeam::PhysicalCores()
                                                 : static_cast<std::size_t>(flags.threads);
  KV_TRY(CheckMemory(flags, corpus, threads));
  KV_TRY(PrepareFiles(env, flags));
  KV_TRY(const auto team, base::ThreadTeam::Make(threads));
  KV_TRY(auto trainer, training::Trainer::Make(flags.config, flags.options, corpus.text, *team));
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
  HandleSignals();
  auto result = training::RunTraining(*trainer, best, env, corpus.vocabulary, MakeRunOptions(flags),
                                      [&](const training::Progress& p) { progress->Show(p); });
  const auto logged = progress->Finish();
  if (!result) return result.error();
  PrintResult(flags, *trainer, best, result.value());
  if (!logged) return logged.error();
  return 0;
}

// A path that is given must not be empty: it would mean something else, or nothing.
CLI::Option* AddPath(CLI::App* command, const std::string& flags, std::string& value,
                     const std::string& help) {
  const std::string name = flags.substr(flags.rfind(',') + 1);
  return command->add_option(flags, value, help)->check([name](const std::string& path) {
    return path.empty() ? name + " is '': it must be a file name" : std::string();
  });
}

}  // namespace

void AddTrainCommand(CommandSet& commands) {
  CLI::App* command = commands.Add(
      "train", "Train a model on your own text",
      "kvasir train book.txt --val rest.txt -o book.gguf --steps 2000 --checkpoint book.ckpt");
  auto flags = std::make_shared<TrainFlags>();
  command->add_option("text", flags->texts, "Text files, UTF-8, read in this order")->required();
  AddPath(command, "-o,--output", flags->output, "The model file to write (GGUF)")->required();
  AddPath(command, "--val", flags->held_out, "Held-out text; the best model on it is kept");
  command->add_option("--arch", flags->arch, "Architecture (gpt2)")->check(CLI::IsMember({"gpt2"}));
  command->add_option("--tokenizer", flags->tokenizer, "Kind of vocabulary (char)")
      ->check(CLI::IsMember({"char"}));
  command->add_option("--name", flags->name, "general.name in the file (default: the file's name)");
  command->add_option("--dtype", flags->dtype, "Type of the matrices in the file (f32)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  AddUint(command, "--layers", flags->config.layers, {1, 512}, "Layers (4)");
  AddUint(command, "--heads", flags->config.heads, {1, 1024}, "Attention heads (4)");
  AddUint(command, "--dim", flags->config.embedding, {1, 1u << 16}, "Channels (128)");
  AddUint(command, "--ffn", flags->feed_forward, {1, 1u << 18}, "MLP channels (4 x dim)");
  AddUint(command, "--context", flags->config.context, {1, 1u << 20}, "Context in tokens (128)");
  command->add_flag("--tied", flags->config.tied_head,
                    "Share the output matrix with the embedding");
  AddUint(command, "--steps", flags->options.steps, {1, 1000000000}, "Steps (1000)");
  AddUint(command, "--stop-at", flags->stop_at, {1, 1000000000},
          "End at this step as Ctrl-C would; --resume goes on");
  AddUint(command, "--batch", flags->options.batch, {1, 65536}, "Sequences a step (32)");
  AddUint(command, "--shards", flags->shards, {1, 65536},
          "Parts of the batch whose gradients are added in order (4, at most --batch)");
  AddUint(command, "--micro-batch", flags->options.micro_batch, {1, 65536},
          "Sequences computed together: memory against speed, never the result (8)");
  AddFloat(command, "--lr", flags->options.learning_rate, {1e-9, 10}, "Peak learning rate (0.001)");
  AddFloat(command, "--final-lr", flags->options.final_rate, {0, 1},
           "Share of it at the end (0.05)");
  AddUint(command, "--warmup", flags->options.warmup, {0, 1000000000}, "Warm-up steps (100)");
  AddFloat(command, "--dropout", flags->options.dropout, {0, 0.9}, "Dropout probability (0)");
  AddFloat(command, "--weight-decay", flags->options.weight_decay, {0, 10}, "Weight decay (0.1)");
  AddFloat(command, "--clip", flags->options.clip, {0, 1e9}, "Largest gradient norm, 0 = none (1)");
  AddFloat(command, "--beta1", flags->options.beta1, {0, 0.999999}, "AdamW's first decay (0.9)");
  AddFloat(command, "--beta2", flags->options.beta2, {0, 0.999999}, "AdamW's second decay (0.95)");
  AddUint(command, "--eval-every", flags->eval_every, {1, 1000000000},
          "Steps between evaluations of --val (250)");
  AddPath(command, "--checkpoint", flags->checkpoint, "Directory for what --resume needs");
  AddUint(command, "--checkpoint-every", flags->checkpoint_every, {1, 1000000000},
          "Steps between checkpoints (250)");
  command->add_flag("--resume", flags->resume, "Go on from --checkpoint, to the same bits");
  AddPath(command, "--log", flags->log, "Log file, tab-separated (default: OUTPUT.log)");
  AddUint(command, "--threads", flags->threads, {1, 1024}, "Threads (physical cores)");
  AddUint(command, "--seed", flags->options.seed, {}, "Seed of weights, order and dropout (1)");
  command->add_flag("--json", flags->json, "One JSON document at the end");
  commands.OnRun(command, [flags] { return Train(*flags); });
}

}  // namespace kvasir::cli
