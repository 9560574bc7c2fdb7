// kvasir verify: the numerics contract on this machine and model.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "eval/trainer_forward.h"
#include "eval/verify.h"
#include "kernels/targets.h"

namespace kvasir::cli {
namespace {

struct VerifyFlags {
  ModelFlags model;
  std::uint64_t trials = eval::VerifyOptions().trials;
  std::optional<std::uint64_t> seed;
  bool json = false;
};

// The trainer's axis says nothing of an architecture that the trainer does not know, nor of weights
// that it could not train.
bool Applies(const eval::VerifyReport& report, eval::VerifyAxis axis) {
  return axis != eval::VerifyAxis::kTrainer || report.trainer_checked;
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const kernels::Target& target : kernels::AvailableTargets()) names.push_back(target.name);
  return names;
}

nlohmann::ordered_json ToJson(const OpenModel& open, const eval::VerifyReport& report,
                              std::uint64_t seed) {
  auto axes = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < eval::kVerifyAxes; ++i) {
    const auto axis = static_cast<eval::VerifyAxis>(i);
    auto& entry = axes[std::string(eval::VerifyAxisName(axis))];
    entry = {{"comparisons", report.axes[i].comparisons},
             {"mismatches", report.axes[i].mismatches}};
    if (!Applies(report, axis)) entry["applicable"] = false;
  }
  nlohmann::ordered_json json = {{"contract", eval::kContractVersion},
                                 {"model", open.path},
                                 {"trials", report.trials},
                                 {"seed", seed},
                                 {"policy", CachePolicyText(open, {})},
                                 {"targets", TargetNames()},
                                 {"comparisons", report.comparisons()},
                                 {"mismatches", report.mismatches()},
                                 {"axes", std::move(axes)}};
  if (!report.first_mismatch.empty()) json["first_mismatch"] = report.first_mismatch;
  return json;
}

void PrintText(const OpenModel& open, const eval::VerifyReport& report, std::uint64_t seed) {
  fmt::print("numerics contract {}: {}, {} trials, seed {}, instruction sets {}\n",
             eval::kContractVersion, open.path, report.trials, seed,
             fmt::join(TargetNames(), ", "));
  fmt::print("\n{:<15}{:>12}{:>12}\n", "axis", "rows", "mismatches");
  for (std::size_t i = 0; i < eval::kVerifyAxes; ++i) {
    const auto axis = static_cast<eval::VerifyAxis>(i);
    if (!Applies(report, axis)) {
      fmt::print("{:<15}{:>12}{:>12}  ({})\n", eval::VerifyAxisName(axis), 0, 0,
                 open.policy && !open.policy->IsFull() ? "the trainer knows the full cache only"
                 : open.loaded.model->shape().rounded()
                     ? "the weights are rounded; the trainer's are f32"
                     : "the trainer does not know this architecture");
      continue;
    }
    fmt::print("{:<15}{:>12}{:>12}\n", eval::VerifyAxisName(axis), report.axes[i].comparisons,
               report.axes[i].mismatches);
  }
  fmt::print("{:<15}{:>12}{:>12}\n\n", "all", report.comparisons(), report.mismatches());
  if (report.mismatches() == 0) {
    fmt::print("Every row of logits has the bits of the plain run's.\n");
  } else {
    fmt::print("The first mismatch: {}\n", report.first_mismatch);
  }
}

base::Result<int> RunVerify(const VerifyFlags& flags) {
  KV_TRY(const OpenModel open, Open(flags.model));
  eval::VerifyOptions options;
  options.trials = flags.trials;
  options.seed = SeedOr(flags.seed);
  options.policy = open.policy;
  KV_TRY(options.trainer, eval::MakeTrainerForward(*open.loaded.model, *open.team));
  if (isatty(STDERR_FILENO) == 1) {
    options.after_trial = [&](std::uint64_t done) {
      fmt::print(stderr, "\rtrial {} of {}{}", done, flags.trials,
                 done == flags.trials ? "\r\033[K" : "");
    };
  }
  KV_TRY(const auto report, eval::Verify(*open.loaded.model, options));
  if (flags.json) {
    PrintJson(ToJson(open, report, options.seed));
  } else {
    PrintText(open, report, options.seed);
  }
  return report.mismatches() == 0 ? 0 : 1;
}

}  // namespace

void AddVerifyCommand(CommandSet& commands) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = commands.Add(
      "verify", "Random trials of the numerics contract: the same bits however work is arranged",
      "kvasir verify --trials 500 --seed 1");
  command
      ->add_option("-m,--model", flags->model.model,
                   "model file (GGUF); default: $KVASIR_MODEL, else the bundled model")
      ->type_name("FILE");
  AddPolicyFlag(command, flags->model.kv);
  AddUint(command, "--trials", flags->trials, {1, 1'000'000'000},
          fmt::format("trials, each over every axis; default {}", flags->trials));
  AddUint(command, "--seed", flags->seed, {}, "of the trials; default: a random one, reported");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunVerify(*flags); });
}

}  // namespace kvasir::cli
