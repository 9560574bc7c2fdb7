#include "cli/train_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/thread_team.h"
#include "cli/machine_memory.h"
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
  AddPath(command, "-o,--output", flags.output, "The model file to write (GGUF)");
  AddPath(command, "--val", flags.held_out, "Held-out text; the best model on it is kept");
  AddPath(command, "--init", flags.init,
          "Go on from this model's weights, with its shape and vocabulary, to learn other texts");
  AddFloat(command, "--val-share", flags.held_out_share, {0, 0.9},
           "Without --val: the share of the texts that is held out, by whole documents; 0 = none "
           "(0.05, at most 128 KiB, nothing of small texts)");
  command->add_option("--name", flags.name, "general.name in the file (default: the file's name)");
  command->add_option("--dtype", flags.dtype, "Type of the matrices in the file (f32)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
}

void AddVocabularyFlags(CLI::App* command, TrainFlags& flags) {
  command
      ->add_option_function<std::string>(
          "--tokenizer",
          [&flags](const std::string& name) {
            flags.vocabulary.tokenizer = name == "char"  ? TokenizerChoice::kCharacter
                                         : name == "bpe" ? TokenizerChoice::kBytePairs
                                                         : TokenizerChoice::kAuto;
          },
          "Kind of vocabulary: char, bpe (byte pairs), or auto: char where most letters are Han, "
          "bpe elsewhere (auto)")
      ->check(CLI::IsMember({"auto", "char", "bpe"}));
  AddUint(command, "--vocab", flags.vocabulary.tokens,
          {tokenizer::kMinBytePairVocabulary, tokenizer::kMaxBytePairVocabulary},
          "Tokens of a bpe vocabulary, at most (4096)");
  command
      ->add_option_function<std::string>(
          "--encoding",
          [&flags](const std::string& name) {
            flags.encoding = FindTextEncoding(name);
            flags.encoding_name = name;
          },
          "Of the texts: utf-8, gb18030 (also GBK), utf-16, utf-16le, utf-16be, or auto: utf-8, or "
          "utf-16 by its byte order mark (auto)")
      ->check(CLI::IsMember(TextEncodingNames()));
}

void AddScheduleFlags(CLI::App* command, training::TrainOptions& options) {
  command
      ->add_option_function<std::string>(
          "--schedule",
          [&options](const std::string& name) {
            options.schedule =
                name == "wsd" ? training::Schedule::kWsd : training::Schedule::kCosine;
          },
          "How the rate falls: cosine, or wsd: level, then a line down over --decay (cosine)")
      ->check(CLI::IsMember({"cosine", "wsd"}));
  AddFloat(command, "--decay", options.decay_share, {0, 1},
           "Share of the steps in which wsd's rate falls (0.2)");
}

// For a shell: quoted where it has characters that might mean something there.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The flags of model and vocabulary, by add(flag) and add(flag, value).
template <typename Add>
void AddShapeWords(const TrainFlags& flags, const Add& add) {
  const TokenizerChoice tokenizer = flags.vocabulary.tokenizer;
  if (tokenizer == TokenizerChoice::kCharacter) add("--tokenizer", "char");
  if (tokenizer == TokenizerChoice::kBytePairs) add("--tokenizer", "bpe");
  if (flags.vocabulary.tokens) add("--vocab", *flags.vocabulary.tokens);
  const TrainShape& shape = flags.shape;
  add("--arch", shape.arch);
  add("--layers", shape.layers);
  add("--heads", shape.heads);
  if (shape.kv_heads) add("--kv-heads", *shape.kv_heads);
  add("--dim", shape.dim);
  if (shape.ffn) add("--ffn", *shape.ffn);
  add("--context", shape.context);
  if (shape.rope_base != 0) add("--rope-base", shape.rope_base);
  if (!shape.window.empty()) add("--window", shape.window);
  if (shape.tied) add("--tied");
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
  command->add_flag("--recompute", flags.options.recompute,
                    "Compute activations again in the backward pass instead of keeping them: less "
                    "memory, slower, the same result");
  AddFloat(command, "--lr", flags.options.learning_rate, {1e-9, 10}, "Peak learning rate (0.001)");
  AddFloat(command, "--final-lr", flags.options.final_rate, {0, 1},
           "Share of it at the end (0.05)");
  AddScheduleFlags(command, flags.options);
  AddUint(command, "--warmup", flags.options.warmup, {0, 1000000000}, "Warm-up steps (100)");
  command->add_option("--kv", flags.options.kv,
                      "Train for a cache of this SPEC: keys and values are rounded as it rounds "
                      "them (dtype=int4)");
  AddFloat(command, "--kv-error", flags.options.kv_error, {1, 16},
           "With --kv: what rounding errors are multiplied by while training; more makes a model "
           "indifferent to them sooner (1)");
  AddFloat(command, "--dropout", flags.options.dropout, {0, 0.9}, "Dropout probability (0)");
  AddFloat(command, "--weight-decay", flags.options.weight_decay, {0, 10}, "Weight decay (0.1)");
  AddFloat(command, "--clip", flags.options.clip, {0, 1e9}, "Largest gradient norm, 0 = none (1)");
  AddFloat(command, "--beta1", flags.options.beta1, {0, 0.999999}, "AdamW's first decay (0.9)");
  AddFloat(command, "--beta2", flags.options.beta2, {0, 0.999999}, "AdamW's second decay (0.95)");
}

void AddReportFlags(CLI::App* command, TrainFlags& flags) {
  AddUint(command, "--sample-every", flags.sample_every, {1, 1000000000},
          "Let the model write after every so many steps (never)");
  command->add_option("--sample-prompt", flags.sample_prompt, "What it goes on from then ('')");
  AddUint(command, "--sample-tokens", flags.sample_tokens, {1, 1u << 20},
          "How much it writes (128)");
  AddPath(command, "--report", flags.report, "Folder of the final report (OUTPUT.report)");
  command->add_flag("--no-report", flags.no_report, "Write no report, and keep no samples");
}

void AddRunFlags(CLI::App* command, TrainFlags& flags) {
  command
      ->add_option_function<std::string>(
          "--preset", [&flags](const std::string& name) { flags.preset = PresetOf(name); },
          "Size and length for this machine and text: nano (some 10 minutes), small (an hour), "
          "base (a night); other flags go before it")
      ->check(CLI::IsMember({"nano", "small", "base"}));
  command->add_flag("--estimate", flags.estimate,
                    "Tell time, memory and cache bytes a token, measured in a few steps; train "
                    "nothing");
  AddUint(command, "--eval-every", flags.eval_every, {1, 1000000000},
          "Steps between evaluations of held-out text (250)");
  AddUint(command, "--patience", flags.patience, {1, 1000000000},
          "End after so many evaluations in a row without a better one (never)");
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
  AddReportFlags(command, flags);
  for (const char* shape :
       {"--arch", "--layers", "--heads", "--kv-heads", "--dim", "--ffn", "--context", "--rope-base",
        "--tied", "--tokenizer", "--vocab", "--preset"}) {
    command->get_option("--init")->excludes(command->get_option(shape));
  }
}

std::string TrainFlags::Name() const {
  return name.empty() ? std::filesystem::path(output).stem().string() : name;
}

tensor::DType TrainFlags::FileType() const {
  return dtype == "f16"    ? tensor::DType::kF16
         : dtype == "bf16" ? tensor::DType::kBF16
                           : tensor::DType::kF32;
}

training::RunOptions TrainFlags::Run(const std::atomic<bool>* stop) const {
  return {.output = output,
          .name = Name(),
          .dtype = FileType(),
          .checkpoint_directory = checkpoint,
          .checkpoint_every = checkpoint_every,
          .patience = patience,
          .stop_at = stop_at,
          .stop = stop};
}

base::Result<void> CheckTrainFlags(TrainFlags& flags) {
  flags.options.shards = flags.shards.value_or(std::min(flags.options.shards, flags.options.batch));
  KV_TRY(training::CheckOptions(flags.options));
  KV_TRY(MakeModelConfig(flags.shape, /*vocab=*/1));
  if (flags.output.empty() && !flags.estimate) {
    return MakeError(ErrorCode::kUsage, "--output is required: a file for the model");
  }
  if (flags.no_report && !flags.report.empty()) {
    return MakeError(ErrorCode::kUsage, "--report and --no-report exclude each other");
  }
  if (!flags.held_out.empty() && flags.held_out_share) {
    return MakeError(ErrorCode::kUsage, "--val and --val-share exclude each other");
  }
  if (flags.resume && flags.checkpoint.empty()) {
    return MakeError(ErrorCode::kUsage, "--resume needs --checkpoint DIR to resume from");
  }
  if (flags.estimate) return base::Success();
  return CheckDistinct(flags.Paths());
}

std::string ApplyPreset(TrainFlags& flags, std::uint64_t text_tokens, std::uint64_t vocabulary) {
  const PresetSettings settings =
      SettingsOf(*flags.preset, {.cores = base::ThreadTeam::PhysicalCores(),
                                 .memory_bytes = MachineMemory(),
                                 .text_tokens = text_tokens,
                                 .vocabulary = vocabulary});
  std::string told = "preset:";
  const auto set = [&](const char* flag, auto& field, auto value) {
    if (!flags.given.contains(flag)) field = value;
    told += fmt::format(" {} {}", flag, field);
  };
  set("--layers", flags.shape.layers, settings.layers);
  set("--heads", flags.shape.heads, settings.heads);
  set("--dim", flags.shape.dim, settings.dim);
  set("--context", flags.shape.context, settings.context);
  set("--batch", flags.options.batch, settings.batch);
  set("--steps", flags.options.steps, settings.steps);
  set("--warmup", flags.options.warmup, settings.warmup);
  set("--lr", flags.options.learning_rate, settings.learning_rate);
  set("--dropout", flags.options.dropout, settings.dropout);
  set("--eval-every", flags.eval_every, settings.eval_every);
  set("--checkpoint-every", flags.checkpoint_every, settings.eval_every);
  return told;
}

std::string RepeatCommand(const TrainFlags& flags) {
  std::string out = "kvasir train";
  const auto word = [&](const std::string& text) { out += " " + ShellWord(text); };
  const auto add = [&](const char* flag, const auto&... value) {
    word(flag);
    (word(fmt::format("{}", value)), ...);
  };
  for (const std::string& text : flags.texts) word(text);
  if (!flags.held_out.empty()) add("--val", flags.held_out);
  if (flags.held_out_share) add("--val-share", *flags.held_out_share);
  if (!flags.encoding_name.empty()) add("--encoding", flags.encoding_name);
  add("-o", flags.output);
  if (!flags.init.empty()) {
    add("--init", flags.init);
  } else {
    AddShapeWords(flags, add);
  }
  const training::TrainOptions& o = flags.options;
  add("--steps", o.steps);
  add("--batch", o.batch);
  add("--shards", o.shards);
  add("--lr", o.learning_rate);
  add("--final-lr", o.final_rate);
  add("--warmup", o.warmup);
  if (o.schedule == training::Schedule::kWsd) {
    add("--schedule", "wsd");
    add("--decay", o.decay_share);
  }
  if (!o.kv.empty()) add("--kv", o.kv);
  if (o.kv_error != 1) add("--kv-error", o.kv_error);
  add("--dropout", o.dropout);
  add("--weight-decay", o.weight_decay);
  add("--clip", o.clip);
  add("--beta1", o.beta1);
  add("--beta2", o.beta2);
  add("--eval-every", flags.eval_every);
  if (flags.patience) add("--patience", *flags.patience);
  add("--seed", o.seed);
  add("--dtype", flags.dtype);
  return out;
}

}  // namespace kvasir::cli
