// kvasir train: a model from a person's own text.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "cli/train_progress.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"
#include "training/run.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

struct TrainFlags {
  std::vector<std::string> texts;
  std::string output, held_out, checkpoint, log, name, dtype = "f32", arch = "gpt2";
  std::string tokenizer = "char";
  bool resume = false, json = false;
  std::uint64_t threads = 0;
  model::Gpt2Config config;
  training::TrainOptions options;
  std::uint64_t eval_every = 250, checkpoint_every = 250;
  std::optional<std::uint64_t> stop_at;
  std::optional<std::uint64_t> feed_forward;
};

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks the run to save and end; the second ends it at once.
void OnSignal(int number) {
  if (stop_requested.exchange(true)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

struct Corpus {
  tokenizer::VocabularySpec vocabulary;
  std::vector<base::TokenId> text, held_out;
};

base::Result<std::string> ReadText(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  if (file->text().empty()) return MakeError(ErrorCode::kBadData, "'{}' is empty", path);
  const auto invalid = base::FirstInvalidUtf8(file->text());
  if (invalid) {
    return MakeError(ErrorCode::kBadData, "'{}' is not UTF-8: byte 0x{:02X} at offset {}", path,
                     static_cast<std::uint8_t>(file->text()[*invalid]), *invalid);
  }
  return std::string(file->text());
}

// The vocabulary is taken from all files, so that the held-out text has no unknown character.
base::Result<Corpus> ReadCorpus(base::Env& env, const TrainFlags& flags) {
  std::string text, held_out;
  for (const std::string& path : flags.texts) {
    KV_TRY(const std::string part, ReadText(env, path));
    text += part;
  }
  if (!flags.held_out.empty()) {
    KV_TRY(held_out, ReadText(env, flags.held_out));
  }
  const std::string_view both[] = {text, held_out};
  Corpus corpus;
  KV_TRY(corpus.vocabulary, tokenizer::BuildCharacterVocabulary(both));
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(corpus.vocabulary));
  KV_TRY(const auto characters, tokenizer::CharacterTokenizer::Make(std::move(vocabulary)));
  KV_TRY(corpus.text, characters->Encode(text));
  KV_TRY(corpus.held_out, characters->Encode(held_out));
  if (!flags.held_out.empty() && corpus.held_out.size() < 2) {
    return MakeError(ErrorCode::kBadData, "'{}' has {} token; held-out text needs at least 2",
                     flags.held_out, corpus.held_out.size());
  }
  return corpus;
}

base::Result<void> CheckFlags(base::Env& env, const TrainFlags& flags) {
  if (flags.resume && flags.checkpoint.empty()) {
    return MakeError(ErrorCode::kUsage, "--resume needs --checkpoint DIR to resume from");
  }
  const std::string last = training::CheckpointPath(flags.checkpoint);
  if (!flags.checkpoint.empty() && !flags.resume && env.Exists(last)) {
    return WithHint(MakeError(ErrorCode::kUsage, "'{}' exists and would be lost", last),
                    "add --resume to go on with that run, or name another directory");
  }
  if (flags.resume && !env.Exists(last)) {
    return MakeError(ErrorCode::kIo, "there is no checkpoint '{}' to resume from", last);
  }
  if (std::error_code ignored; std::filesystem::is_directory(flags.output, ignored)) {
    return MakeError(ErrorCode::kIo, "cannot write '{}': it is a folder", flags.output);
  }
  // Hours later would be too late to learn that the output cannot be written.
  const std::string probe = flags.output + ".probe" + std::to_string(getpid());
  if (const auto written = base::WriteFileAtomic(env, probe, std::string_view()); !written) {
    base::Error error = written.error();
    error.message = fmt::format("cannot write '{}': {}", flags.output, error.message);
    return error;
  }
  return env.Remove(probe);
}

void PrintResult(const TrainFlags& flags, const training::Trainer& trainer,
                 const training::RunResult& result) {
  const std::uint64_t parameters = model::ParameterCount(trainer.config());
  if (flags.json) {
    nlohmann::ordered_json json{{"output", flags.output},          {"seed", flags.options.seed},
                                {"steps", result.steps_done},      {"stopped", result.stopped},
                                {"vocab", trainer.config().vocab}, {"parameters", parameters}};
    if (result.best_loss) json["held_out_nll"] = *result.best_loss;
    PrintJson(json);
    return;
  }
  fmt::print("{} {}: {} parameters, vocabulary {}, {} steps",
             result.stopped ? "stopped" : "trained", flags.output, parameters,
             trainer.config().vocab, result.steps_done);
  if (result.best_loss) fmt::print(", best held-out loss {:.5f} nats per token", *result.best_loss);
  fmt::print("\n");
  if (result.stopped && !flags.checkpoint.empty()) fmt::print("go on with --resume\n");
}

base::Result<int> Train(TrainFlags flags) {
  base::Env& env = base::Env::Default();
  flags.config.feed_forward = flags.feed_forward.value_or(4 * flags.config.embedding);
  KV_TRY(training::CheckOptions(flags.options));
  KV_TRY(const Corpus corpus, ReadCorpus(env, flags));
  flags.config.vocab = corpus.vocabulary.pieces.size();
  if (flags.config.embedding % flags.config.heads != 0) {
    return MakeError(ErrorCode::kUsage, "--dim {} is not a multiple of --heads {}",
                     flags.config.embedding, flags.config.heads);
  }
  KV_TRY(CheckFlags(env, flags));
  base::ThreadTeam team(flags.threads == 0 ? base::ThreadTeam::PhysicalCores()
                                           : static_cast<std::size_t>(flags.threads));
  KV_TRY(auto trainer, training::Trainer::Make(flags.config, flags.options, corpus.text, team));
  if (flags.resume) {
    KV_TRY(trainer->LoadCheckpoint(env, training::CheckpointPath(flags.checkpoint)));
  }
  KV_TRY(auto progress, TrainProgress::Open(flags.log.empty() ? flags.output + ".log" : flags.log,
                                            flags.resume, *trainer));
  training::RunOptions run;
  run.output = flags.output;
  run.name = flags.name.empty() ? std::filesystem::path(flags.output).stem().string() : flags.name;
  run.dtype = flags.dtype == "f16"    ? tensor::DType::kF16
              : flags.dtype == "bf16" ? tensor::DType::kBF16
                                      : tensor::DType::kF32;
  run.checkpoint_directory = flags.checkpoint;
  run.eval_every = flags.eval_every;
  run.checkpoint_every = flags.checkpoint_every;
  run.stop = &stop_requested;
  run.stop_at = flags.stop_at;
  signal(SIGINT, OnSignal);
  signal(SIGTERM, OnSignal);
  auto result = training::RunTraining(*trainer, env, corpus.vocabulary, corpus.held_out, run,
                                      [&](const training::Progress& p) { progress->Show(p); });
  const auto logged = progress->Finish();
  if (!result) return result.error();
  PrintResult(flags, *trainer, result.value());
  if (!logged) return logged.error();
  return 0;
}

}  // namespace

void AddTrainCommand(CommandSet& commands) {
  CLI::App* command = commands.Add(
      "train", "Train a model on your own text",
      "kvasir train book.txt --val rest.txt -o book.gguf --steps 2000 --checkpoint book.ckpt");
  auto flags = std::make_shared<TrainFlags>();
  command->add_option("text", flags->texts, "Text files, UTF-8, read in this order")->required();
  command->add_option("-o,--output", flags->output, "The model file to write (GGUF)")->required();
  command->add_option("--val", flags->held_out, "Held-out text; the best model on it is kept");
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
  AddUint(command, "--shards", flags->options.shards, {1, 65536},
          "Parts of the batch whose gradients are added in order (4)");
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
  command->add_option("--checkpoint", flags->checkpoint, "Directory for what --resume needs");
  AddUint(command, "--checkpoint-every", flags->checkpoint_every, {1, 1000000000},
          "Steps between checkpoints (250)");
  command->add_flag("--resume", flags->resume, "Go on from --checkpoint, to the same bits");
  command->add_option("--log", flags->log, "Log file, tab-separated (default: OUTPUT.log)");
  AddUint(command, "--threads", flags->threads, {1, 1024}, "Threads (physical cores)");
  AddUint(command, "--seed", flags->options.seed, {}, "Seed of weights, order and dropout (1)");
  command->add_flag("--json", flags->json, "One JSON document at the end");
  commands.OnRun(command, [flags] { return Train(*flags); });
}

}  // namespace kvasir::cli
