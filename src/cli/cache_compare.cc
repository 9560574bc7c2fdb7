#include "cli/cache_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cli/json_output.h"
#include "cli/terminal_text.h"
#include "eval/line_plot.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

// A whole number where it is one: 4096 rather than 4096.0.
ordered_json Number(double value) {
  const auto whole = static_cast<std::uint64_t>(value);
  return static_cast<double>(whole) == value ? ordered_json(whole) : ordered_json(value);
}

ordered_json PriceToJson(const NamedPolicy& named, const eval::PolicyPrice& price) {
  return {{"policy", named.spec},
          {"canonical", named.policy.Canonical()},
          {"bytes_per_token", Number(price.bytes_per_token)},
          {"bytes_per_token_128", Number(price.bytes_per_token_128)},
          {"bytes_per_token_512", Number(price.bytes_per_token_512)},
          {"nll", price.evidence.nll},
          {"perplexity", price.evidence.perplexity},
          {"perplexity_change", price.perplexity_change},
          {"kl_mean", price.evidence.kl_mean},
          {"kl_p99", price.evidence.kl_p99},
          {"top1", price.evidence.top1},
          {"tokens_per_s_start", price.tokens_per_s_start},
          {"tokens_per_s_end", price.tokens_per_s_end},
          {"off_equals_on", price.check.mismatches == 0},
          {"comparisons", price.check.comparisons}};
}

ordered_json FoundToJson(const FoundPolicy& found) {
  ordered_json json = {{"budget_bytes", found.budget_bytes},
                       {"policy", found.best().policy.Canonical()},
                       {"bytes", found.best().bytes},
                       {"calibration_tokens", found.calibration_tokens},
                       {"calibration_kl_mean", found.best().kl}};
  auto settings = ordered_json::array();
  for (const kvcache::HeadPolicy& setting : found.settings) {
    settings.push_back(PolicyOptions(setting));
  }
  json["settings"] = std::move(settings);
  json["layer_kl_mean"] = found.result.layer_kl;
  auto candidates = ordered_json::array();
  for (const eval::PolicyCandidate& candidate : found.result.candidates) {
    candidates.push_back({{"how", candidate.how},
                          {"policy", candidate.policy.Canonical()},
                          {"bytes", candidate.bytes},
                          {"kl_mean", candidate.kl}});
  }
  json["candidates"] = std::move(candidates);
  return json;
}

// A divergence in a table: 0, or two digits that tell its order.
std::string KlText(double kl) { return kl == 0 ? "0" : fmt::format("{:.1e}", kl); }

void PrintFound(const FoundPolicy& found) {
  fmt::print("searched: {} bytes a sequence, on {} tokens that the table below does not use\n",
             found.budget_bytes, found.calibration_tokens);
  fmt::print("found:    {}\n          {} bytes, mean KL {} there\n\n",
             found.best().policy.Canonical(), found.best().bytes, KlText(found.best().kl));
  fmt::print("mean KL with a setting in one layer alone:\n{:>6}", "layer");
  for (const kvcache::HeadPolicy& setting : found.settings) {
    fmt::print("  {}", PolicyOptions(setting));
  }
  for (std::size_t layer = 0; layer < found.result.layer_kl.size(); ++layer) {
    fmt::print("\n{:>6}", layer);
    for (std::size_t i = 0; i < found.settings.size(); ++i) {
      fmt::print("  {:>{}}", KlText(found.result.layer_kl[layer][i]),
                 PolicyOptions(found.settings[i]).size());
    }
  }
  fmt::print("\n\n");
}

// Which of the picture's four colours: exact, rounded, some positions not seen, a map of several.
std::size_t KindOf(const kvcache::CachePolicy& policy) {
  if (policy.IsLossless()) return 0;
  const kvcache::HeadPolicy& first = policy.At(0, 0);
  for (std::uint64_t layer = 0; layer < policy.layers(); ++layer) {
    for (const kvcache::HeadPolicy& head : policy.Layer(layer)) {
      if (!(head == first)) return 3;
    }
  }
  return first.window != 0 ? 2 : 1;
}

}  // namespace

ordered_json ToJson(const CacheTable& table) {
  ordered_json json = {{"model", table.model},
                       {"context", table.context},
                       {"tokens", table.comparison.full.tokens},
                       {"full_perplexity", table.comparison.full.perplexity}};
  auto policies = ordered_json::array();
  for (std::size_t i = 0; i < table.policies.size(); ++i) {
    policies.push_back(PriceToJson(table.policies[i], table.comparison.policies[i]));
  }
  json["policies"] = std::move(policies);
  if (table.found) json["search"] = FoundToJson(*table.found);
  return json;
}

void PrintText(const CacheTable& table) {
  if (table.found) PrintFound(*table.found);
  fmt::print("{} tokens in windows of {}; the full cache's perplexity is {:.4f}\n\n",
             table.comparison.full.tokens, table.context, table.comparison.full.perplexity);
  std::size_t width = std::string_view("policy").size();
  for (const NamedPolicy& named : table.policies) {
    width = std::max(width, DisplayWidth(OneLine(named.spec)));
  }
  fmt::print("{}  {:>9} {:>7} {:>7}  {:>10} {:>9}  {:>7} {:>7} {:>8}  {:>8} {:>8}  {}\n",
             PadRight("policy", width), "bytes/tok", "at 128", "at 512", "perplexity", "change",
             "mean KL", "p99 KL", "top-1", "tok/s at", "and end", "off = on");
  for (std::size_t i = 0; i < table.policies.size(); ++i) {
    const eval::PolicyPrice& price = table.comparison.policies[i];
    fmt::print(
        "{}  {:>9.1f} {:>7.1f} {:>7.1f}  {:>10.4f} {:>+8.4f}%  {:>7} {:>7} {:>7.2f}%  {:>8.0f} "
        "{:>8.0f}  {}\n",
        PadRight(OneLine(table.policies[i].spec), width), price.bytes_per_token,
        price.bytes_per_token_128, price.bytes_per_token_512, price.evidence.perplexity,
        price.perplexity_change, KlText(price.evidence.kl_mean), KlText(price.evidence.kl_p99),
        100 * price.evidence.top1, price.tokens_per_s_start, price.tokens_per_s_end,
        price.check.mismatches == 0 ? "yes" : "NO");
  }
}

std::string DrawPolicies(const CacheTable& table) {
  double least = 0;  // Above 0, of all.
  for (const eval::PolicyPrice& price : table.comparison.policies) {
    const double kl = price.evidence.kl_mean;
    if (kl > 0 && (least == 0 || kl < least)) least = kl;
  }
  const double bottom = least == 0 ? 1e-9 : std::pow(10, std::floor(std::log10(least)) - 1);
  eval::PlotPanel panel = {"Mean KL(full ‖ policy) against bytes",
                           "bytes a token at the end of the context",
                           "nats a token",
                           {}};
  for (const char* kind : {"exact", "rounded", "window", "mixed"}) {
    eval::PlotSeries& series = panel.series.emplace_back();
    series.label = kind;
    series.color = panel.series.size() - 1;
  }
  for (std::size_t i = 0; i < table.policies.size(); ++i) {
    const eval::PolicyPrice& price = table.comparison.policies[i];
    const double kl = price.evidence.kl_mean;
    panel.series[KindOf(table.policies[i].policy)].points.push_back(
        {price.bytes_per_token, kl > 0 ? kl : bottom, table.policies[i].spec});
  }
  return eval::DrawSvg("What cache policies cost",
                       fmt::format("{} tokens, context {}; exact ones at the bottom",
                                   table.comparison.full.tokens, table.context),
                       {&panel, 1});
}

std::vector<std::string> SplitSpecs(const std::string& text) {
  std::vector<std::string> specs;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('|', begin);
    specs.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return specs;
    begin = end + 1;
  }
}

}  // namespace kvasir::cli
