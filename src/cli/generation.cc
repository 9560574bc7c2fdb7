#include "cli/generation.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "engine/prompt.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using nlohmann::ordered_json;

void PrintTraceHeader(std::uint32_t layers) {
  fmt::print(stderr,
             "# one layer of {}: positions computed, rows of K (and as many of V) read and "
             "written; without = the same step without a cache\n"
             "# bytes of K and V: held by the texts, in one layer and in all; of these shared by "
             "several, and in empty slots; cached = kept of texts that have ended\n"
             "# {:>5} {:>4} {:>10} {:>8} {:>10} {:>10} {:>8} {:>12} {:>12} {:>12} {:>10} {:>12}\n",
             layers, "step", "seqs", "positions", "without", "rows read", "without", "written",
             "bytes/layer", "bytes held", "shared", "empty", "cached");
}

void PrintTrace(const engine::StepTrace& trace) {
  fmt::print(stderr,
             "  {:>5} {:>4} {:>10} {:>8} {:>10} {:>10} {:>8} {:>12} {:>12} {:>12} {:>10} {:>12}\n",
             trace.step, trace.sequences, trace.work.positions, trace.work_without_cache.positions,
             trace.work.rows_read, trace.work_without_cache.rows_read, trace.work.rows_written,
             trace.held_bytes_per_layer.front(), trace.held_bytes, trace.shared_bytes,
             trace.waste_bytes, trace.idle_bytes);
}

ordered_json TraceToJson(const engine::StepTrace& trace) {
  auto tables = ordered_json::array();
  for (const engine::SequenceTrace& table : trace.tables) {
    tables.push_back({{"prompt_index", table.request},
                      {"index", table.choice},
                      {"stem", table.stem},
                      {"length", table.length},
                      {"blocks", table.blocks}});
  }
  return {{"step", trace.step},
          {"sequences", trace.sequences},
          {"tokens", trace.tokens},
          {"positions", trace.work.positions},
          {"positions_without_cache", trace.work_without_cache.positions},
          {"rows_read", trace.work.rows_read},
          {"rows_written", trace.work.rows_written},
          {"held_bytes", trace.held_bytes},
          {"held_bytes_per_layer", trace.held_bytes_per_layer},
          {"shared_bytes", trace.shared_bytes},
          {"waste_bytes", trace.waste_bytes},
          {"idle_bytes", trace.idle_bytes},
          {"tables", std::move(tables)}};
}

ordered_json ChoiceToJson(const OpenModel& open, const engine::GenerateRequest& request,
                          const engine::ChoiceResult& choice) {
  auto ids = ordered_json::array();
  auto logprobs = ordered_json::array();
  for (const engine::GeneratedToken& token : choice.tokens) {
    ids.push_back(token.id);
    logprobs.push_back(token.logprob);
  }
  ordered_json json = {{"index", choice.index},
                       {"text", choice.text},
                       {"token_ids", std::move(ids)},
                       {"logprobs", std::move(logprobs)},
                       {"finish_reason", engine::FinishReasonName(choice.finish)}};
  if (request.top_logprobs > 0) {
    auto tokens = ordered_json::array();
    for (const engine::GeneratedToken& token : choice.tokens) tokens.push_back(ToJson(open, token));
    json["tokens"] = std::move(tokens);
  }
  return json;
}

}  // namespace

void AddKvBudgetFlag(CLI::App* command, ModelFlags& flags) {
  AddBytes(
      command, "--kv-budget", flags.kv_budget, {1},
      "most bytes of cached keys and values, as 512MiB; texts that find no room wait; default: "
      "enough for the 32 texts that run at once");
}

engine::GeneratorOptions GeneratorOptionsOf(const OpenModel& open, const ModelFlags& flags) {
  engine::GeneratorOptions options;
  options.policy = open.policy;
  options.use_cache = !flags.no_kv_cache;
  options.block_tokens = flags.block_tokens;
  options.prefill_chunk = flags.prefill_chunk;
  options.kv_budget_bytes = flags.kv_budget;
  return options;
}

base::Result<std::vector<base::TokenId>> TokensOfArgument(const OpenModel& open,
                                                          const std::string& text,
                                                          std::string_view what) {
  auto tokens = engine::PromptTokens(*open.loaded.tokenizer, text);
  if (tokens) return tokens;
  base::Error error = tokens.error();
  error.code = ErrorCode::kUsage;
  error.message = fmt::format("{}: {}", what, error.message);
  return error;
}

std::uint64_t SeedOfRun(const SamplingFlags& flags) {
  const std::uint64_t seed = SeedOr(flags.seed);
  if (!flags.seed) fmt::print(stderr, "seed {}\n", seed);
  return seed;
}

base::Result<engine::GenerateReport> RunGeneration(const OpenModel& open, const ModelFlags& flags,
                                                   const Generation& generation, bool trace,
                                                   engine::Observer observer) {
  KV_TRY(const auto generator,
         engine::Generator::Make(*open.loaded.model, open.loaded.tokenizer->vocabulary(),
                                 *open.team, GeneratorOptionsOf(open, flags)));
  return RunGeneration(*generator, open, generation, trace, std::move(observer));
}

base::Result<engine::GenerateReport> RunGeneration(engine::Generator& generator,
                                                   const OpenModel& open,
                                                   const Generation& generation, bool trace,
                                                   engine::Observer observer) {
  if (trace) {
    PrintTraceHeader(static_cast<std::uint32_t>(open.loaded.model->shape().layers));
    observer.on_step = PrintTrace;
  }
  return generator.Run(generation.requests, observer);
}

ordered_json ToJson(const OpenModel& open, const engine::GeneratedToken& token) {
  const tokenizer::Vocabulary& vocabulary = open.loaded.tokenizer->vocabulary();
  auto top = ordered_json::array();
  for (const sampling::TokenLogProb& other : token.top) {
    top.push_back({{"token", TokenText(vocabulary, other.id)},
                   {"id", other.id},
                   {"prob", other.prob},
                   {"logprob", other.logprob}});
  }
  return {{"token", TokenText(vocabulary, token.id)},
          {"id", token.id},
          {"logprob", token.logprob},
          {"top", std::move(top)}};
}

ordered_json ToJson(const OpenModel& open, const ModelFlags& flags, const Generation& generation,
                    const engine::GenerateReport& report) {
  auto choices = ordered_json::array();
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    for (const engine::ChoiceResult& choice : report.results[i].choices) {
      ordered_json json = ChoiceToJson(open, generation.requests[i], choice);
      if (report.results.size() > 1) {
        json["prompt_index"] = i;
        json["seed"] = generation.requests[i].seed;
      }
      choices.push_back(std::move(json));
    }
  }
  ordered_json settings = generation.settings;
  settings["kv_cache"] = !flags.no_kv_cache;
  settings["block_tokens"] = flags.block_tokens;
  settings["prefill_chunk"] = flags.prefill_chunk;
  if (flags.kv_budget) settings["kv_budget"] = *flags.kv_budget;
  settings["threads"] = open.team->size();
  ordered_json json = {{"model", open.path},
                       {"seed", generation.seed},
                       {"settings", std::move(settings)},
                       {"choices", std::move(choices)},
                       {"usage",
                        {{"prompt_tokens", report.usage.prompt_tokens},
                         {"completion_tokens", report.usage.completion_tokens},
                         {"cached_tokens", report.usage.cached_tokens}}},
                       {"timing",
                        {{"prefill_ms", report.timing.prefill_ms},
                         {"decode_ms", report.timing.decode_ms},
                         {"tokens_per_s", report.TokensPerSecond()}}},
                       {"cache",
                        {{"bytes_per_token", report.bytes_per_token},
                         {"bytes", report.peak_bytes},
                         {"shared_bytes", report.peak_shared_bytes},
                         {"saved_bytes", report.peak_saved_bytes},
                         {"idle_bytes", report.idle_bytes},
                         {"preemptions", report.preemptions},
                         {"policy", CachePolicyText(open, flags)}}},
                       {"work",
                        {{"steps", report.steps},
                         {"positions", report.work.positions},
                         {"rows_read", report.work.rows_read},
                         {"rows_written", report.work.rows_written}}}};
  if (!report.trace.empty()) {
    auto steps = ordered_json::array();
    for (const engine::StepTrace& trace : report.trace) steps.push_back(TraceToJson(trace));
    json["trace"] = std::move(steps);
  }
  return json;
}

}  // namespace kvasir::cli
