// kvasir bench cache: what the KV cache gains, how its gain and its cost grow with the text, and
// what blocks and their index cost.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/bench.h"
#include "cli/json_output.h"
#include "eval/cache_timing.h"
#include "eval/generation_speed.h"
#include "eval/line_plot.h"
#include "eval/paging_cost.h"
#include "kernels/targets.h"
#include "kvcache/index_speed.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

// Longer texts are not generated whole without a cache: their time is summed from single steps.
constexpr std::uint64_t kLongestWhole = 512;

// What the prefix index is timed with.
constexpr kvcache::IndexSpeedOptions kIndexed;

// What to measure, and at which sizes, if the flags do not say.
struct Plan {
  std::uint64_t context;               // Of random weights.
  std::vector<std::uint64_t> lengths;  // Of single steps; ascending.
  std::vector<std::uint64_t> batches;
  std::vector<std::uint64_t> paging_lengths;
};

Plan PlanOf(const BenchFlags& flags) {
  const bool own_context = !flags.model.empty() || flags.context != BenchFlags().context;
  Plan plan = {.context = own_context ? flags.context : 4096,
               .lengths = {32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096},
               .batches = {1, 8, 32},
               .paging_lengths = {512, 4096}};
  if (flags.quick) {
    plan = {.context = own_context ? flags.context : 512,
            .lengths = {32, 64, 128, 256, 512},
            .batches = {1, 8},
            .paging_lengths = {512}};
  }
  if (!flags.sequences.empty()) plan.batches = flags.sequences;
  if (!flags.tokens.empty()) {
    plan.lengths = flags.tokens;
    plan.context =
        std::max(flags.context, *std::max_element(flags.tokens.begin(), flags.tokens.end()));
    if (own_context) plan.context = flags.context;
  }
  std::sort(plan.lengths.begin(), plan.lengths.end());
  plan.lengths.erase(std::unique(plan.lengths.begin(), plan.lengths.end()), plan.lengths.end());
  return plan;
}

// Those up to the context, and the context itself where it is shorter than the longest.
std::vector<std::uint64_t> UpTo(std::uint64_t context, const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> fitting;
  for (const std::uint64_t tokens : lengths) {
    if (fitting.empty() || fitting.back() < std::min(tokens, context)) {
      fitting.push_back(std::min(tokens, context));
    }
  }
  return fitting;
}

// Whole texts, generated with the cache and without it.
base::Result<Rows> MeasureWhole(const Bench& bench) {
  Rows rows;
  for (const std::uint64_t tokens : bench.TokensOr({32, 64, 120})) {
    if (tokens > kLongestWhole && tokens <= bench.shape().context) continue;
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

// With random weights and nothing else asked, also the lesson's third exercise: a context of 512.
base::Result<Rows> MeasureLongWhole(const BenchFlags& flags, base::ThreadTeam& team) {
  KV_TRY(const auto open, OpenFor(flags, 512));
  BenchFlags longer = flags;
  longer.tokens = {500};
  longer.repetitions = std::min<std::uint64_t>(flags.repetitions, 3);
  return MeasureWhole({longer, *open.model, team});
}

struct CacheBench {
  Rows whole;
  std::uint64_t context = 0;  // Of the model measured in what follows.
  std::vector<eval::BatchTiming> timings;
  std::vector<std::pair<std::uint64_t, std::vector<eval::PagingCost>>> paging;  // By text length.
  kvcache::IndexSpeed index;
};

base::Result<CacheBench> Measure(const Bench& bench, const model::Model& longer) {
  const BenchFlags& flags = bench.flags;
  const Plan plan = PlanOf(flags);
  CacheBench result;
  KV_TRY(result.whole, MeasureWhole(bench));
  if (flags.model.empty() && flags.tokens.empty() && !flags.quick &&
      flags.context == BenchFlags().context) {
    KV_TRY(const auto more, MeasureLongWhole(flags, bench.team));
    result.whole.insert(result.whole.end(), more.begin(), more.end());
  }
  result.context = longer.shape().context;
  KV_TRY(result.timings, eval::MeasureCacheTiming(longer,
                                                  {.lengths = UpTo(result.context, plan.lengths),
                                                   .batches = plan.batches,
                                                   .repetitions = flags.repetitions,
                                                   .all_seconds = flags.quick ? 10.0 : 80.0},
                                                  bench.team));
  for (const std::uint64_t tokens : UpTo(result.context, plan.paging_lengths)) {
    if (tokens < 2) continue;
    // Ratios near 1 need more pairs than large ones.
    KV_TRY(auto costs, eval::MeasurePagingCost(longer,
                                               {.tokens = tokens,
                                                .block_tokens = {16, 32, 64, 128, 256},
                                                .repetitions = 3 * flags.repetitions},
                                               bench.team));
    result.paging.emplace_back(tokens, std::move(costs));
  }
  KV_TRY(result.index, kvcache::MeasureIndexSpeed(kIndexed));
  return result;
}

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json FitToJson(const std::optional<eval::PolynomialFit>& fit) {
  if (!fit) return {};
  ordered_json json = ordered_json::object();
  for (std::size_t i = 0; i < fit->coefficients.size(); ++i) {
    json[std::string(1, static_cast<char>('a' + i))] = fit->coefficients[i];
  }
  json["r_squared"] = fit->r_squared;
  return json;
}

ordered_json TimingToJson(const eval::BatchTiming& timing) {
  auto steps = ordered_json::array();
  for (std::size_t i = 0; i < timing.steps.size(); ++i) {
    const eval::StepTime& step = timing.steps[i];
    const eval::TextTime& text = timing.texts[i];
    steps.push_back({{"tokens", step.tokens},
                     {"step_ms_with", step.ms_with},
                     {"step_ms_without", OrNull(step.ms_without)},
                     {"ratio", OrNull(step.ratio)},
                     {"text_ms_with", text.ms_with},
                     {"text_ms_without", OrNull(text.ms_without)}});
  }
  return {{"batch", timing.batch},
          {"lengths", std::move(steps)},
          {"step_with", FitToJson(timing.step_with)},
          {"text_without", FitToJson(timing.text_without)},
          {"text_without_cubic", FitToJson(timing.text_cubic)}};
}

Rows PagingRows(const CacheBench& result) {
  Rows rows;
  for (const auto& [tokens, costs] : result.paging) {
    for (const eval::PagingCost& cost : costs) {
      rows.push_back({{"tokens", tokens},
                      {"block_tokens", cost.block_tokens},
                      {"ms_per_step", cost.ms_per_step},
                      {"ratio", cost.ratio},
                      {"waste", cost.waste}});
    }
  }
  return rows;
}

ordered_json IndexToJson(const kvcache::IndexSpeed& index) {
  return {{"block_tokens", kIndexed.block_tokens},
          {"hash_ns_per_token", index.hash_ns},
          {"find_ns_per_token", index.find_ns},
          {"insert_ns_per_token", index.insert_ns}};
}

void PrintTimings(const CacheBench& result) {
  fmt::print(
      "\nOne step of a text of n tokens, and the whole text (context {}):\n\n"
      "{:>6} {:>6} {:>13} {:>10} {:>8} {:>13} {:>12}\n",
      result.context, "batch", "n", "step with ms", "without", "ratio", "text with ms", "without");
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("–");
  };
  for (const eval::BatchTiming& timing : result.timings) {
    for (std::size_t i = 0; i < timing.steps.size(); ++i) {
      const eval::StepTime& step = timing.steps[i];
      const eval::TextTime& text = timing.texts[i];
      fmt::print("{:>6} {:>6} {:>13} {:>10} {:>8} {:>13} {:>12}\n", timing.batch, step.tokens,
                 cell(step.ms_with), cell(step.ms_without), cell(step.ratio), cell(text.ms_with),
                 cell(text.ms_without));
    }
  }
  fmt::print("\nFitted, in ms:\n");
  for (const eval::BatchTiming& timing : result.timings) {
    if (timing.step_with) {
      const auto& c = timing.step_with->coefficients;
      fmt::print("  batch {:>2}, a step with the cache   {:.4g} + {:.4g}·n (R² {:.4f})\n",
                 timing.batch, c[0], c[1], timing.step_with->r_squared);
    }
    if (timing.text_without) {
      const auto& c = timing.text_without->coefficients;
      fmt::print("            a text without it       {:.4g}·n + {:.4g}·n² (R² {:.4f})\n", c[0],
                 c[1], timing.text_without->r_squared);
    }
    if (timing.text_cubic) {
      const auto& c = timing.text_cubic->coefficients;
      fmt::print(
          "            with attention's n³     {:.4g}·n + {:.4g}·n² + {:.4g}·n³ (R² {:.4f})\n",
          c[0], c[1], c[2], timing.text_cubic->r_squared);
    }
  }
}

void PrintText(const CacheBench& result) {
  PrintTable(result.whole);
  PrintTimings(result);
  fmt::print("\nBlocks against one block as long as the text, decoding its end:\n\n");
  PrintTable(PagingRows(result));
  fmt::print(
      "\nPrefix index, blocks of {} tokens: {:.1f} ns a token to hash, {:.1f} to find, {:.1f} to "
      "insert\n",
      kIndexed.block_tokens, result.index.hash_ns, result.index.find_ns, result.index.insert_ns);
}

// A measured series and, where there is one, the polynomial fitted to it.
template <typename Value>
eval::PlotSeries SeriesOf(const eval::BatchTiming& timing, std::size_t color, bool with,
                          const Value& value, const std::optional<eval::PolynomialFit>& fit,
                          std::span<const int> powers) {
  eval::PlotSeries series = {
      .label = fmt::format("batch {}, {}", timing.batch, with ? "with the cache" : "without"),
      .color = color,
      .dashed = !with,
      .points = {},
      .line = {}};
  for (std::size_t i = 0; i < timing.steps.size(); ++i) {
    const auto tokens = static_cast<double>(timing.steps[i].tokens);
    const std::optional<double> y = value(i);
    if (!y) continue;
    series.points.push_back({tokens, *y});
    if (fit) series.line.push_back({tokens, ValueAt(*fit, powers, tokens)});
  }
  if (!fit) series.line = series.points;
  return series;
}

std::string Draw(const Bench& bench, const CacheBench& result) {
  eval::PlotPanel step = {"One more token", "tokens so far, n", "ms a step, all sequences", {}};
  eval::PlotPanel text = {"A whole text", "tokens, n", "ms, all sequences", {}};
  for (std::size_t k = 0; k < result.timings.size(); ++k) {
    const eval::BatchTiming& timing = result.timings[k];
    const auto& steps = timing.steps;
    const auto& texts = timing.texts;
    step.series.push_back(SeriesOf(
        timing, k, true, [&](std::size_t i) { return std::optional(steps[i].ms_with); },
        timing.step_with, eval::kStepPowers));
    step.series.push_back(SeriesOf(
        timing, k, false, [&](std::size_t i) { return steps[i].ms_without; }, std::nullopt, {}));
    text.series.push_back(SeriesOf(timing, k, true,
                                   [&](std::size_t i) { return std::optional(texts[i].ms_with); },
                                   std::nullopt, {}));
    text.series.push_back(SeriesOf(
        timing, k, false, [&](std::size_t i) { return texts[i].ms_without; }, timing.text_cubic,
        eval::kCubicPowers));
  }
  const model::ModelShape& shape = bench.shape();
  const eval::PlotPanel panels[] = {step, text};
  return eval::DrawSvg(
      "The same bits with and without the KV cache: how time grows",
      fmt::format(
          "{} layers × {}, vocabulary {}, {} {}, {}; dots measured, lines of steps with and "
          "texts without the cache fitted",
          shape.layers, shape.embedding, shape.vocab, bench.team.size(),
          bench.team.size() == 1 ? "thread" : "threads", kernels::CurrentTargetName()),
      panels);
}

}  // namespace

base::Result<int> RunBenchCache(const BenchFlags& flags) {
  const std::uint64_t context = PlanOf(flags).context;
  KV_TRY(const auto open, OpenFor(flags, flags.tokens.empty() ? flags.context : context));
  OpenBench other;
  if (flags.model.empty() && open.model->shape().context != context) {
    KV_TRY(other, OpenFor(flags, context));
  }
  KV_TRY(const auto team, base::ThreadTeam::Make(flags.threads));
  const Bench bench = {flags, *open.model, *team};
  KV_TRY(const CacheBench result, Measure(bench, other.model ? *other.model : *open.model));
  if (!flags.plot.empty()) {
    KV_TRY(base::WriteFileAtomic(base::Env::Default(), flags.plot, Draw(bench, result)));
  }
  if (flags.json) {
    ordered_json json = BenchJson(bench, open.name);
    json["rows"] = result.whole;
    json["timing_context"] = result.context;
    auto timings = ordered_json::array();
    for (const eval::BatchTiming& timing : result.timings) timings.push_back(TimingToJson(timing));
    json["timing"] = std::move(timings);
    json["paging"] = PagingRows(result);
    json["index"] = IndexToJson(result.index);
    PrintJson(json);
    return 0;
  }
  PrintBenchHead(bench, open.name,
                 "generating with the cache, and recomputing everything at each step");
  PrintText(result);
  return 0;
}

}  // namespace kvasir::cli
