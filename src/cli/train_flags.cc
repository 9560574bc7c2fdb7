#include "cli/train_flags.h"

#include <algorithm>

#include "cli/number_flags.h"
#include "tokenizer/byte_pair_trainer.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// A path that is given must not be empty: it would mean something else, or nothing.
CLI::Option* AddPath(CLI::App* command, const std::string& flags, std::string& value,
                     const std::string& help) {
  const std::string name = flags.substr(flags.rfind(',') + 1);
  return command->add_option(flags, value, help)->check([name](const std::string& path) {
    return path.empty() ? name + " is '': it must be a file name" : std::string();
  });
}

void AddFileFlags(CLI::App* command, TrainFlags& flags) {
  command->add_option("text", flags.texts, "Text files and folders of them, read in this order")
      ->required();
  AddPath(command, "-o,--output", flags.output, "The model file to write (GGUF)")->required();
  AddPath(command, "--val", flags.held_out, "Held-out text; the best model on it is kept");
  AddFloat(command, "--val-share", flags.held_out_share, {0, 0.9},
           "Without --val: the share of the texts that is held out, by whole documents; 0 = none "
           "(0.05, at most 128 KiB, nothing of small texts)");
  command->add_option("--name", flags.name, "general.name in the file (default: the file's name)");
  command->add_option("--dtype", flags.dtype, "Type of the matrices in the file (f32)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
}

void AddStepFlags(CLI::App* command, TrainFlags& flags) {
  AddUint(command, "--steps", flags.options.steps, {1, 1000000000}, "Steps (1000)");
  AddUint(command, "--stop-at", flags.stop_at, {1, 1000000000},
          "End at this step as Ctrl-C would; --resume goes on");
  AddUint(command, "--batch", flags.options.batch, {1, 65536}, "Sequences a step (32)");
  AddUint(command, "--shards", flags.shards, {1, 65536},
          "Parts of the batch whose gradients are added in order (4, at most --batch)");
  AddUint(command, "--micro-batch", flags.options.micro_batch, {1, 65536},
          "Sequences computed together: memory against speed, never the result (8)");
  AddFloat(command, "--lr", flags.options.learning_rate, {1e-9, 10}, "Peak learning rate (0.001)");
  AddFloat(command, "--final-lr", flags.options.final_rate, {0, 1},
           "Share of it at the end (0.05)");
  AddScheduleFlags(command, flags.options);
  AddUint(command, "--warmup", flags.options.warmup, {0, 1000000000}, "Warm-up steps (100)");
  AddFloat(command, "--dropout", flags.options.dropout, {0, 0.9}, "Dropout probability (0)");
  AddFloat(command, "--weight-decay", flags.options.weight_decay, {0, 10}, "Weight decay (0.1)");
  AddFloat(command, "--clip", flags.options.clip, {0, 1e9}, "Largest gradient norm, 0 = none (1)");
  AddFloat(command, "--beta1", flags.options.beta1, {0, 0.999999}, "AdamW's first decay (0.9)");
  AddFloat(command, "--beta2", flags.options.beta2, {0, 0.999999}, "AdamW's second decay (0.95)");
}

void AddRunFlags(CLI::App* command, TrainFlags& flags) {
  AddUint(command, "--eval-every", flags.eval_every, {1, 1000000000},
          "Steps between evaluations of held-out text (250)");
  AddPath(command, "--checkpoint", flags.checkpoint, "Directory for what --resume needs");
  AddUint(command, "--checkpoint-every", flags.checkpoint_every, {1, 1000000000},
          "Steps between checkpoints (250)");
  command->add_flag("--resume", flags.resume, "Go on from --checkpoint, to the same bits");
  AddPath(command, "--log", flags.log, "Log file, tab-separated (default: OUTPUT.log)");
  AddUint(command, "--threads", flags.threads, {1, 1024}, "Threads (physical cores)");
  AddUint(command, "--seed", flags.options.seed, {}, "Seed of weights, order and dropout (1)");
  command->add_flag("--json", flags.json, "One JSON document at the end");
}

}  // namespace

void AddTrainFlags(CLI::App* command, TrainFlags& flags) {
  AddFileFlags(command, flags);
  AddVocabularyFlags(command, flags);
  AddShapeFlags(command, flags.shape);
  AddStepFlags(command, flags);
  AddRunFlags(command, flags);
}

base::Result<void> CheckTrainFlags(TrainFlags& flags) {
  flags.options.shards = flags.shards.value_or(std::min(flags.options.shards, flags.options.batch));
  KV_TRY(training::CheckOptions(flags.options));
  KV_TRY(MakeModelConfig(flags.shape, /*vocab=*/1));
  if (flags.resume && flags.checkpoint.empty()) {
    return MakeError(ErrorCode::kUsage, "--resume needs --checkpoint DIR to resume from");
  }
  return CheckDistinct(flags.Paths());
}

}  // namespace kvasir::cli
