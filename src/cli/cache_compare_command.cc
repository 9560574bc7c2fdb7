// kvasir cache compare TEXTFILE: what cache policies cost, in bytes, quality and time.
#include "cli/cache_compare_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/cache_compare.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "eval/cache_compare.h"
#include "eval/cache_search.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

struct CacheCompareFlags {
  ModelFlags model;
  std::string file;
  std::string policies;
  std::string plot;
  std::string search;
  std::uint64_t tokens = 0;  // 0: all.
  bool json = false;
};

base::Result<std::vector<NamedPolicy>> ParsePolicies(const CacheCompareFlags& flags,
                                                     const model::ModelShape& shape) {
  const std::vector<std::string> specs =
      flags.policies.empty() ? eval::DefaultPolicies(shape) : SplitSpecs(flags.policies);
  std::vector<NamedPolicy> policies;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto policy = kvcache::CachePolicy::Parse(specs[i], shape.Policy());
    if (!policy) {
      return MakeError(policy.error().code, "policy {} of --policies: {}", i + 1,
                       policy.error().message);
    }
    policies.push_back({specs[i], std::move(policy.value())});
  }
  return policies;
}

// "BYTES", of a sequence of a full context, or "BYTES/token".
base::Result<std::uint64_t> ParseBudget(const std::string& text, std::uint64_t context) {
  constexpr std::string_view kPerToken = "/token";
  constexpr UintRange kRange = {.min = 1, .max = std::uint64_t{1} << 40};
  if (!text.ends_with(kPerToken)) return ParseBytes("--search", text, kRange);
  KV_TRY(const std::uint64_t bytes,
         ParseBytes("--search", text.substr(0, text.size() - kPerToken.size()), kRange));
  return bytes * context;
}

base::Result<std::vector<TokenId>> ReadTokens(const CacheCompareFlags& flags,
                                              const OpenModel& open) {
  KV_TRY(const auto file, base::Env::Default().Map(flags.file));
  auto tokens = open.loaded.tokenizer->Encode(file->text());
  const std::size_t least = flags.search.empty() ? 2 : 4;
  if (tokens && tokens.value().size() < least) {
    tokens = MakeError(ErrorCode::kBadData,
                       "the text has too few tokens: {}, but at least {} are needed",
                       tokens.value().size(), least);
  }
  if (!tokens) {
    return MakeError(tokens.error().code, "'{}': {}", flags.file, tokens.error().message);
  }
  if (flags.tokens != 0 && flags.tokens < tokens.value().size()) {
    tokens.value().resize(flags.tokens);
  }
  return tokens;
}

base::Result<int> RunCacheCompare(const CacheCompareFlags& flags) {
  KV_TRY(const OpenModel open, Open(flags.model));
  const model::Model& model = *open.loaded.model;
  KV_TRY(const std::vector<TokenId> text, ReadTokens(flags, open));
  std::span<const TokenId> tokens = text;
  CacheTable table;
  table.model = open.path;
  table.context = model.shape().context;
  KV_TRY(table.policies, ParsePolicies(flags, model.shape()));
  eval::CacheCompareOptions options;
  options.arrangement = {.block_tokens = flags.model.block_tokens,
                         .prefill_chunk = flags.model.prefill_chunk,
                         .kv_cache = !flags.model.no_kv_cache};
  if (!flags.search.empty()) {
    FoundPolicy found;
    KV_TRY(found.budget_bytes, ParseBudget(flags.search, model.shape().context));
    found.calibration_tokens = eval::CalibrationTokens(model.shape(), tokens.size());
    found.settings = eval::SearchedSettings(model.shape());
    KV_TRY(found.result,
           eval::SearchCachePolicy(model, tokens.first(found.calibration_tokens),
                                   found.budget_bytes, options.arrangement, *open.team));
    tokens = tokens.subspan(found.calibration_tokens);
    table.policies.push_back({found.best().policy.Canonical(), found.best().policy});
    table.found = std::move(found);
  }
  std::vector<kvcache::CachePolicy> policies;
  for (const NamedPolicy& named : table.policies) policies.push_back(named.policy);
  KV_TRY(table.comparison, eval::ComparePolicies(model, tokens, policies, options, *open.team));
  if (!flags.plot.empty()) {
    KV_TRY(base::WriteFileAtomic(base::Env::Default(), flags.plot, DrawPolicies(table)));
  }
  if (flags.json) {
    PrintJson(ToJson(table));
  } else {
    PrintText(table);
  }
  for (const eval::PolicyPrice& price : table.comparison.policies) {
    if (price.check.mismatches != 0) return 1;
  }
  return 0;
}

}  // namespace

void AddCacheCompare(CLI::App* cache, CommandSet& commands) {
  auto flags = std::make_shared<CacheCompareFlags>();
  CLI::App* compare = cache->add_subcommand(
      "compare", "What cache policies cost on a text: bytes, perplexity, divergence, speed");
  compare->footer(
      "Examples:\n  kvasir cache compare tang.val.txt --plot policies.svg\n"
      "  kvasir cache compare tang.val.txt --policies \"full|dtype=int8|window=64,sinks=4\" "
      "--json\n  kvasir cache compare tang.val.txt --search 96KiB");
  AddModelFlags(compare, flags->model);
  compare->remove_option(compare->get_option("--kv"));
  compare->add_option("TEXTFILE", flags->file, "UTF-8 text to predict")->required();
  compare
      ->add_option("--policies", flags->policies,
                   "the policies, each as --kv takes it, separated by |; default: one of each kind")
      ->type_name("SPECS");
  compare->add_option("--plot", flags->plot, "draw divergence against bytes into this SVG file")
      ->type_name("FILE");
  compare
      ->add_option("--search", flags->search,
                   "also find a policy by layer or head that takes at most BYTES for a sequence of "
                   "a full context (or BYTES/token), on the text's first half, and measure it with "
                   "the others on the rest")
      ->type_name("BYTES");
  AddUint(compare, "--tokens", flags->tokens, {4, std::uint64_t{1} << 40},
          "only so many first tokens of the text; default: all");
  compare->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(compare, [flags] { return RunCacheCompare(*flags); });
}

}  // namespace kvasir::cli
