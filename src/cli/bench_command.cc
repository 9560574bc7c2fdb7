// kvasir bench KIND: how fast this machine runs a model, beside what it could do at most.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_flags.h"
#include "cli/bench_masks.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "eval/speed.h"
#include "eval/training_speed.h"
#include "training/start_weights.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

base::Result<Rows> RunDecode(const Bench& bench) {
  Rows rows;
  for (const std::uint64_t tokens : bench.TokensOr({120})) {
    KV_TRY(const auto speed, eval::MeasureDecode(bench.model, bench.Options(tokens), bench.team));
    const double roof = eval::MeasureReadRoof(static_cast<std::size_t>(speed.weight_bytes),
                                              bench.flags.repetitions, bench.team);
    rows.push_back({{"tokens", tokens},
                    {"us_per_token", speed.us_per_token},
                    {"us_forward", speed.us_per_token_forward},
                    {"us_sampling", speed.us_per_token_sampling},
                    {"us_start", speed.us_per_token_start},
                    {"us_end", speed.us_per_token_end},
                    {"tokens_per_s", 1e6 / speed.us_per_token},
                    {"weight_bytes", speed.weight_bytes},
                    {"kv_bytes", speed.kv_bytes},
                    {"gb_per_s", speed.gb_per_s},
                    {"roof_gb_per_s", roof},
                    {"roof_share", speed.gb_per_s / roof}});
  }
  return rows;
}

base::Result<Rows> RunPrefill(const Bench& bench) {
  Rows rows;
  const double roof = eval::MeasureFmaRoof(bench.flags.repetitions, bench.team);
  for (const std::uint64_t tokens : bench.TokensOr({16, 120})) {
    KV_TRY(const auto speed, eval::MeasurePrefill(bench.model, bench.Options(tokens), bench.team));
    rows.push_back({{"tokens", tokens},
                    {"ms", speed.ms},
                    {"tokens_per_s", speed.tokens_per_s},
                    {"gflop_per_s", speed.gflop_per_s},
                    {"roof_gflop_per_s", roof},
                    {"roof_share", speed.gflop_per_s / roof}});
  }
  return rows;
}

base::Result<Rows> RunBatch(const Bench& bench) {
  Rows rows;
  auto counts = bench.flags.sequences;
  if (counts.empty()) counts = {1, 8, 32};
  const auto tokens = bench.TokensOr({std::min<std::uint64_t>(100, bench.shape().context / 2)});
  for (const std::uint64_t count : counts) {
    for (const std::uint64_t each : tokens) {
      KV_TRY(const auto speed,
             eval::MeasureBatch(bench.model, count, bench.Options(each), bench.team));
      rows.push_back({{"sequences", count},
                      {"tokens", each},
                      {"ms_per_step", speed.ms_per_step},
                      {"tokens_per_s", speed.tokens_per_s}});
    }
  }
  return rows;
}

// Of the model only its shape matters: the weights start random, the text is random.
base::Result<Rows> RunTrain(const Bench& bench) {
  const auto weights = training::StartWeightsOf(bench.model);
  if (!weights) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "architecture '{}' cannot be trained; supported are gpt2, llama, qwen2",
                           bench.shape().architecture);
  }
  Rows rows;
  auto counts = bench.flags.sequences;
  if (counts.empty()) counts = {32};
  const double roof = eval::MeasureFmaRoof(bench.flags.repetitions, bench.team);
  for (const std::uint64_t count : counts) {
    KV_TRY(const auto speed,
           eval::MeasureTraining(weights->config, count, bench.flags.repetitions, bench.team));
    rows.push_back({{"sequences", count},
                    {"tokens", count * weights->config.context()},
                    {"ms_per_step", speed.ms_per_step},
                    {"tokens_per_s", speed.tokens_per_s},
                    {"gflop_per_s", speed.gflop_per_s},
                    {"roof_gflop_per_s", roof},
                    {"roof_share", speed.gflop_per_s / roof}});
  }
  return rows;
}

constexpr const char* kCacheKind = "cache";
constexpr const char* kAttentionKind = "attention";
constexpr const char* kMasksKind = "masks";

// Kind attention has a shape of its own, where the flags say nothing else: heads as wide as those
// of published models, and so much cache that it counts.
void UseAttentionShape(const CLI::App& command, BenchFlags& flags) {
  if (command.count("--heads") == 0) flags.heads = 8;
  if (command.count("--dim") == 0) flags.dim = 512;
}

struct Kind {
  const char* name;
  const char* measures;
  base::Result<Rows> (*run)(const Bench&);
};
constexpr Kind kKinds[] = {
    {"decode", "one sequence, a step and a draw a token; draws at temperature 1", RunDecode},
    {"prefill", "a prompt in one step, logits of its last token", RunPrefill},
    {"batch", "many sequences, a token of each a step; without draws", RunBatch},
    {"engine", "many streams through the whole engine, with draws", RunBenchEngine},
    {"train", "whole steps of the trainer on random text", RunTrain},
    {"store",
     "a prompt and a token: computed; computed while its blocks are stored, as a share of that; "
     "and restored after a restart",
     RunBenchStore},
};

base::Result<int> RunBench(const BenchFlags& flags) {
  if (flags.kind == kCacheKind) return RunBenchCache(flags);
  if (flags.kind == kAttentionKind) return RunBenchAttention(flags);
  if (flags.kind == kMasksKind) {
    ModelFlags model;
    model.model = flags.model;
    return RunBenchMasks(flags, ModelPath(model));
  }
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& k) { return flags.kind == k.name; });
  KV_CHECK(kind != std::end(kKinds));  // The flag's check lets no other through.
  KV_TRY(const auto open, OpenFor(flags, flags.context));
  KV_TRY(const auto team, base::ThreadTeam::Make(flags.threads));
  Bench bench = {flags, *open.model, *team};
  if (!flags.kv.empty()) {
    KV_TRY(bench.policy, ParsePolicyFlag(flags.kv, bench.shape()));
  }
  KV_TRY(auto rows, kind->run(bench));
  if (flags.json) {
    ordered_json json = BenchJson(bench, open.name);
    json["rows"] = std::move(rows);
    PrintJson(json);
    return 0;
  }
  PrintBenchHead(bench, open.name, kind->measures);
  PrintTable(rows);
  return 0;
}

}  // namespace

void AddBenchCommand(CommandSet& commands) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      commands.Add("bench", "How fast a model runs here, beside what the machine can do at most",
                   "kvasir bench decode --threads 1");
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  names.emplace_back(kCacheKind);
  names.emplace_back(kAttentionKind);
  names.emplace_back(kMasksKind);
  command->add_option("KIND", flags->kind, fmt::format("what: {}", fmt::join(names, ", ")))
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("-m,--model", flags->model, "GGUF file; default: random weights")
      ->type_name("FILE");
  command->add_option("--arch", flags->arch, "of random weights: gpt2, llama; default gpt2")
      ->check(CLI::IsMember({"gpt2", "llama"}));
  command
      ->add_option("--dtype", flags->dtype,
                   "of random matrices: f32, q8_0, q4_0 (dims of whole 32); default f32")
      ->check(CLI::IsMember({"f32", "q8_0", "q4_0"}));
  AddUint(command, "--layers", flags->layers, {1, 512}, "of random weights; default 4");
  AddUint(command, "--heads", flags->heads, {1, 1024}, "likewise; default 4");
  AddUint(command, "--kv-heads", flags->kv_heads, {1, 1024},
          "of llama: heads of keys and values; default: as many as heads");
  AddUint(command, "--dim", flags->dim, {1, 65536}, "width of random weights; default 128");
  AddUint(command, "--vocab", flags->vocab, {1, 1 << 24}, "likewise; default 6289");
  AddUint(command, "--context", flags->context, {1, 1 << 20}, "likewise; default 128");
  AddUint(command, "--threads", flags->threads, {1, 1024}, "threads of a step; default 1");
  AddUint(command, "--repetitions", flags->repetitions, {1, 100000},
          "medians are taken over so many; default 9");
  AddUints(command, "--tokens", flags->tokens, {1, 1 << 20}, "lengths to measure, as 512,4096");
  AddUints(command, "--sequences", flags->sequences, {1, 4096},
           "batch, engine, cache and train: how many at once, as 1,8,32");
  AddPolicyFlag(command, flags->kv);
  command->add_option("--plot", flags->plot, "cache: draw the times into this SVG file")
      ->type_name("F.svg");
  command
      ->add_option("--schemas", flags->schemas,
                   "masks: along the instances of every schema file in this folder")
      ->type_name("DIR");
  command
      ->add_option("--formats", flags->formats,
                   "masks: format in a schema: annotate (default) or assert")
      ->type_name("annotate|assert")
      ->check(CLI::IsMember({"annotate", "assert"}));
  command
      ->add_option("--store", flags->store,
                   "store: measure this one, as redis://HOST; default: a directory")
      ->type_name("ADDRESS");
  command->add_flag("--store-compress", flags->compress, "store: compress what is stored");
  command->add_flag("--quick", flags->quick, "cache: short texts and small batches only");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags, command]() -> base::Result<int> {
    if (flags->kind == kAttentionKind) UseAttentionShape(*command, *flags);
    KV_TRY(CheckBenchFlags(*command, *flags));
    return RunBench(*flags);
  });
}

}  // namespace kvasir::cli
