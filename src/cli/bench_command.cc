// kvasir bench KIND: how fast this machine runs a model, beside what it could do at most.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "eval/generation_speed.h"
#include "eval/model_work.h"
#include "eval/random_gpt2.h"
#include "eval/speed.h"
#include "eval/training_speed.h"
#include "kernels/targets.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

// The lesson's shape.
struct BenchFlags {
  std::string kind;
  std::string model;  // Empty: random weights of the shape below.
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t dim = 128;
  std::uint64_t vocab = 6289;
  std::uint64_t context = 128;
  std::uint64_t threads = 1;
  std::uint64_t repetitions = 9;
  std::vector<std::uint64_t> tokens;     // Empty: the kind's own.
  std::vector<std::uint64_t> sequences;  // Likewise.
  bool json = false;
};

// One measurement of a model, as JSON; the table is printed from it.
struct Bench {
  const BenchFlags& flags;
  const model::Model& model;
  base::ThreadTeam& team;

  const model::ModelShape& shape() const { return model.shape(); }
  std::vector<std::uint64_t> TokensOr(std::vector<std::uint64_t> other) const {
    if (!flags.tokens.empty()) return flags.tokens;
    // The kind's own, as far as they fit the context.
    std::vector<std::uint64_t> fitting;
    for (const std::uint64_t tokens : other) fitting.push_back(std::min(tokens, shape().context));
    fitting.erase(std::unique(fitting.begin(), fitting.end()), fitting.end());
    return fitting;
  }
  eval::SpeedOptions Options(std::uint64_t tokens) const {
    return {.tokens = tokens, .repetitions = flags.repetitions};
  }
};

struct OpenBench {
  std::string name;
  std::unique_ptr<model::Model> model;
};

base::Result<OpenBench> OpenFor(const BenchFlags& flags, std::uint64_t context) {
  if (!flags.model.empty()) {
    KV_TRY(auto loaded, model::LoadModel(base::Env::Default(), flags.model));
    return OpenBench{flags.model, std::move(loaded.model)};
  }
  KV_TRY(auto model, eval::MakeRandomGpt2({.layers = flags.layers,
                                           .heads = flags.heads,
                                           .embedding = flags.dim,
                                           .feed_forward = 4 * flags.dim,
                                           .context = context,
                                           .vocab = flags.vocab},
                                          /*seed=*/1));
  return OpenBench{"random weights", std::move(model)};
}

// Keys in the order of the table's columns.
using Rows = std::vector<ordered_json>;

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

base::Result<Rows> RunCache(const Bench& bench) {
  Rows rows;
  for (const std::uint64_t tokens : bench.TokensOr({32, 64, 120})) {
    KV_TRY(const auto gain, eval::MeasureCacheGain(bench.model, bench.Options(tokens), bench.team));
    rows.push_back({{"context", bench.shape().context},
                    {"tokens", tokens},
                    {"ms_on", gain.ms_on},
                    {"ms_off", gain.ms_off},
                    {"ratio", gain.ratio},
                    {"positions_on", gain.positions_on},
                    {"positions_off", gain.positions_off}});
  }
  return rows;
}

// Of the model only its shape matters: the weights start random, the text is random.
base::Result<Rows> RunTrain(const Bench& bench) {
  const model::ModelShape& shape = bench.shape();
  const model::Gpt2Config config = {.layers = shape.layers,
                                    .heads = shape.heads,
                                    .embedding = shape.embedding,
                                    .feed_forward = shape.feed_forward,
                                    .context = shape.context,
                                    .vocab = shape.vocab};
  Rows rows;
  auto counts = bench.flags.sequences;
  if (counts.empty()) counts = {32};
  const double roof = eval::MeasureFmaRoof(bench.flags.repetitions, bench.team);
  for (const std::uint64_t count : counts) {
    KV_TRY(const auto speed,
           eval::MeasureTraining(config, count, bench.flags.repetitions, bench.team));
    rows.push_back({{"sequences", count},
                    {"tokens", count * shape.context},
                    {"ms_per_step", speed.ms_per_step},
                    {"tokens_per_s", speed.tokens_per_s},
                    {"gflop_per_s", speed.gflop_per_s},
                    {"roof_gflop_per_s", roof},
                    {"roof_share", speed.gflop_per_s / roof}});
  }
  return rows;
}

// With random weights and nothing else asked, also the lesson's third exercise: a context of 512.
base::Result<Rows> RunLongCache(const BenchFlags& flags, base::ThreadTeam& team) {
  KV_TRY(const auto open, OpenFor(flags, 512));
  BenchFlags longer = flags;
  longer.tokens = {500};
  return RunCache({longer, *open.model, team});
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
    {"cache", "generating with the cache, and recomputing everything at each step", RunCache},
    {"train", "whole steps of the trainer on random text", RunTrain},
};

std::string CellText(const ordered_json& value) {
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

void PrintTable(const Rows& rows) {
  if (rows.empty()) return;
  std::vector<std::string> lines(rows.size() + 1);
  for (const auto& [key, unused] : rows.front().items()) {
    std::size_t width = key.size();
    for (const ordered_json& row : rows) width = std::max(width, CellText(row[key]).size());
    lines[0] += fmt::format("{:>{}}  ", key, width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lines[i + 1] += fmt::format("{:>{}}  ", CellText(rows[i][key]), width);
    }
  }
  for (const std::string& line : lines) {
    fmt::print("{}\n", std::string_view(line).substr(0, line.size() - 2));
  }
}

void PrintResult(const Bench& bench, const Kind& kind, const std::string& name, const Rows& rows) {
  const model::ModelShape& shape = bench.shape();
  const auto weight_bytes = eval::WeightBytesPerStep(shape);
  if (bench.flags.json) {
    PrintJson({{"bench", kind.name},
               {"model", name},
               {"shape",
                {{"layers", shape.layers},
                 {"heads", shape.heads},
                 {"embedding", shape.embedding},
                 {"vocab", shape.vocab},
                 {"context", shape.context},
                 {"weight_bytes_per_step", weight_bytes}}},
               {"threads", bench.team.size()},
               {"target", kernels::CurrentTargetName()},
               {"repetitions", bench.flags.repetitions},
               {"checked", true},
               {"rows", rows}});
    return;
  }
  fmt::print("{}: {}\n", kind.name, kind.measures);
  fmt::print(
      "{}: {} layers, {} heads, width {}, vocabulary {}, context {}, {:.2f} MB of weights a step\n",
      name, shape.layers, shape.heads, shape.embedding, shape.vocab, shape.context,
      static_cast<double>(weight_bytes) / 1e6);
  fmt::print("{} {}, {}, medians of {}, results checked first\n\n", bench.team.size(),
             bench.team.size() == 1 ? "thread" : "threads", kernels::CurrentTargetName(),
             bench.flags.repetitions);
  PrintTable(rows);
}

base::Result<int> RunBench(const BenchFlags& flags) {
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& k) { return flags.kind == k.name; });
  KV_CHECK(kind != std::end(kKinds));  // The flag's check lets no other through.
  KV_TRY(const auto open, OpenFor(flags, flags.context));
  base::ThreadTeam team(flags.threads);
  const Bench bench = {flags, *open.model, team};
  KV_TRY(auto rows, kind->run(bench));
  if (flags.kind == "cache" && flags.model.empty() && flags.tokens.empty() &&
      flags.context == BenchFlags().context) {
    KV_TRY(const auto more, RunLongCache(flags, team));
    rows.insert(rows.end(), more.begin(), more.end());
  }
  PrintResult(bench, *kind, open.name, rows);
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
  command->add_option("KIND", flags->kind, fmt::format("what: {}", fmt::join(names, ", ")))
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("-m,--model", flags->model, "GGUF file; default: random weights")
      ->type_name("FILE");
  AddUint(command, "--layers", flags->layers, {1, 512}, "of random weights; default 4");
  AddUint(command, "--heads", flags->heads, {1, 1024}, "likewise; default 4");
  AddUint(command, "--dim", flags->dim, {1, 65536}, "width of random weights; default 128");
  AddUint(command, "--vocab", flags->vocab, {1, 1 << 24}, "likewise; default 6289");
  AddUint(command, "--context", flags->context, {1, 1 << 20}, "likewise; default 128");
  AddUint(command, "--threads", flags->threads, {1, 1024}, "threads of a step; default 1");
  AddUint(command, "--repetitions", flags->repetitions, {1, 100000},
          "medians are taken over so many; default 9");
  command->add_option("--tokens", flags->tokens, "lengths to measure, separated by commas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--sequences", flags->sequences,
                   "batch and train: how many at once, e.g. 1,8,32")
      ->delimiter(',')
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4096}));
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunBench(*flags); });
}

}  // namespace kvasir::cli
