#include "cli/train_estimate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "cli/json_output.h"
#include "cli/machine_memory.h"
#include "cli/train_progress.h"
#include "eval/training_probe.h"
#include "training/memory.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr double kMiB = 1 << 20;

// Numbers of an estimate but for time, which changes from one measurement to the next.
struct Sizes {
  std::uint64_t parameters = 0;
  std::uint64_t tokens_per_step = 0;
  double tokens_per_parameter = 0;  // Of the text, seen once.
  double passes = 0;                // Over the text.
  std::uint64_t memory_bytes = 0;
  std::uint64_t model_bytes = 0;  // Without vocabulary and metadata.
  std::uint64_t checkpoint_bytes = 0;
  std::uint64_t cache_bytes_per_token = 0;  // K and V in f32.
};

Sizes SizesOf(const PlannedRun& run) {
  const training::ModelConfig& config = run.config;
  const auto text = static_cast<double>(run.corpus.text.size());
  Sizes sizes;
  sizes.parameters = config.ParameterCount();
  sizes.tokens_per_step = run.options.batch * config.context();
  sizes.tokens_per_parameter = text / static_cast<double>(sizes.parameters);
  sizes.passes =
      static_cast<double>(run.options.steps) * static_cast<double>(sizes.tokens_per_step) / text;
  sizes.memory_bytes = PlannedBytes(run).value_or(0);
  for (const model::TensorSpec& spec : config.Tensors()) {
    const std::uint64_t numbers = spec.shape.ElementCount().value();
    sizes.model_bytes +=
        numbers * (model::WrittenType(spec, run.dtype) == tensor::DType::kF32 ? 4 : 2);
  }
  const std::uint64_t arrays = run.corpus.held_out.empty() ? 3 : 4;
  sizes.checkpoint_bytes = run.checkpoints ? arrays * sizes.parameters * sizeof(float) : 0;
  sizes.cache_bytes_per_token =
      2 * config.layers() * config.kv_heads() * config.head_dim() * sizeof(float);
  return sizes;
}

void PrintText(const PlannedRun& run, const Sizes& sizes, const eval::TrainingProbe& probe) {
  const double seconds = eval::TrainingSeconds(probe, run.options.steps, run.eval_every);
  const auto tokens = static_cast<double>(sizes.tokens_per_step);
  fmt::print("model       {}: {} parameters, vocabulary of {}\n", ShapeText(run.config),
             sizes.parameters, run.config.vocab());
  fmt::print("text        {} tokens, {:.2f} a parameter; {} steps of {} read it {:.1f} times\n",
             run.corpus.text.size(), sizes.tokens_per_parameter, run.options.steps,
             sizes.tokens_per_step, sizes.passes);
  fmt::print("held out    {} tokens\n", run.corpus.held_out.size());
  fmt::print("memory      {:.0f} MiB at most, of {:.0f} MiB here\n",
             std::ceil(static_cast<double>(sizes.memory_bytes) / kMiB),
             static_cast<double>(MachineMemory()) / kMiB);
  fmt::print("files       model {:.1f} MB", 1e-6 * static_cast<double>(sizes.model_bytes));
  if (run.checkpoints) {
    fmt::print(", checkpoint {:.1f} MB", 1e-6 * static_cast<double>(sizes.checkpoint_bytes));
  }
  fmt::print("\ncache       {} bytes a token, {} for the whole context\n",
             sizes.cache_bytes_per_token, sizes.cache_bytes_per_token * run.config.context());
  fmt::print("speed       {:.0f} tokens/s on {} {}, {}\n", tokens / probe.seconds_per_step,
             run.threads, run.threads == 1 ? "thread" : "threads",
             probe.whole_step ? "measured" : "from smaller steps");
  fmt::print("time        about {}: {} steps of {:.3g} s", ClockText(seconds), run.options.steps,
             probe.seconds_per_step);
  if (probe.seconds_per_evaluation > 0) {
    fmt::print(", every {} an evaluation of {:.3g} s", run.eval_every,
               probe.seconds_per_evaluation);
  }
  fmt::print("\n");
}

nlohmann::ordered_json ToJson(const PlannedRun& run, const Sizes& sizes,
                              const eval::TrainingProbe& probe) {
  return {{"architecture", run.config.architecture()},
          {"parameters", sizes.parameters},
          {"vocab", run.config.vocab()},
          {"steps", run.options.steps},
          {"tokens_per_step", sizes.tokens_per_step},
          {"text_tokens", run.corpus.text.size()},
          {"held_out_tokens", run.corpus.held_out.size()},
          {"tokens_per_parameter", sizes.tokens_per_parameter},
          {"passes", sizes.passes},
          {"memory_bytes", sizes.memory_bytes},
          {"machine_bytes", MachineMemory()},
          {"model_bytes", sizes.model_bytes},
          {"checkpoint_bytes", sizes.checkpoint_bytes},
          {"cache_bytes_per_token", sizes.cache_bytes_per_token},
          {"seconds_per_step", probe.seconds_per_step},
          {"seconds_per_evaluation", probe.seconds_per_evaluation},
          {"seconds", eval::TrainingSeconds(probe, run.options.steps, run.eval_every)}};
}

}  // namespace

std::optional<std::uint64_t> PlannedBytes(const PlannedRun& run) {
  const TrainCorpus& corpus = run.corpus;
  const auto trainer =
      training::TrainingBytes(run.config, run.options,
                              {.threads = run.threads,
                               .text_tokens = corpus.text.size() + corpus.held_out.size(),
                               .held_out = !corpus.held_out.empty(),
                               .checkpoints = run.checkpoints});
  // The texts themselves; a second model, packed, while it writes.
  const std::uint64_t texts = corpus.text_bytes.size() + corpus.held_out_bytes.size();
  const auto writer =
      base::CheckedProduct({run.samples ? 1u : 0u, run.config.ParameterCount(), sizeof(float)});
  const auto others = writer ? base::CheckedAdd(*writer, texts) : std::nullopt;
  return trainer && others ? base::CheckedAdd(*trainer, *others) : std::nullopt;
}

base::Result<void> CheckPlannedMemory(const PlannedRun& run) {
  const auto needed = PlannedBytes(run);
  const std::uint64_t there = MachineMemory();
  if (needed && *needed <= there) return base::Success();
  return WithHint(
      MakeError(ErrorCode::kExhausted, "training this takes {} MiB of memory; there are {:.0f} MiB",
                needed ? fmt::format("{:.0f}", std::ceil(static_cast<double>(*needed) / kMiB))
                       : "more than 2^44",
                static_cast<double>(there) / kMiB),
      "lower --micro-batch (the result stays the same), --context, --layers, --dim or --ffn");
}

std::string ShapeText(const training::ModelConfig& config) {
  const std::string shared = config.kv_heads() == config.heads()
                                 ? std::string()
                                 : fmt::format(" ({} of keys and values)", config.kv_heads());
  return fmt::format("{}, {} layers x {} channels, {} heads{}, context {}", config.architecture(),
                     config.layers(), config.embedding(), config.heads(), shared, config.context());
}

base::Result<void> PrintEstimate(const PlannedRun& run, base::ThreadTeam& team, bool json) {
  KV_TRY(const eval::TrainingProbe probe,
         eval::ProbeTraining(run.config, run.options, run.corpus.text, run.corpus.held_out, team));
  const Sizes sizes = SizesOf(run);
  if (json) {
    PrintJson(ToJson(run, sizes, probe));
  } else {
    PrintText(run, sizes, probe);
  }
  return base::Success();
}

}  // namespace kvasir::cli
