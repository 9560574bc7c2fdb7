#include "cli/generate_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/constraint_flags.h"
#include "cli/sampling_flags.h"
#include "constraints/drawable_tokens.h"
#include "engine/prompt.h"
#include "engine/sequence_pool.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using nlohmann::ordered_json;

// End tokens and bans, which need the vocabulary.
base::Result<void> ApplyVocabulary(const GenerateFlags& flags, const OpenModel& open,
                                   engine::GenerateRequest& request) {
  const tokenizer::Vocabulary& vocabulary = open.loaded.tokenizer->vocabulary();
  std::vector<base::TokenId> ends = engine::EndTokens(vocabulary);
  if (flags.eos) {
    if (*flags.eos >= vocabulary.size()) {
      return MakeError(ErrorCode::kUsage, "--eos is {}: the model's token ids are 0 to {}",
                       *flags.eos, vocabulary.size() - 1);
    }
    ends = {static_cast<base::TokenId>(*flags.eos)};
  }
  for (const std::string& text : flags.bans) {
    if (text.empty()) return MakeError(ErrorCode::kUsage, "--ban is empty: a text is needed");
  }
  KV_TRY(request.sampling.banned, constraints::BannedTokens(vocabulary, flags.bans));
  if (flags.ignore_eos) {
    request.sampling.banned.insert(request.sampling.banned.end(), ends.begin(), ends.end());
  } else {
    request.end_tokens = std::move(ends);
    request.named_end_tokens = flags.eos.has_value();
  }
  return base::Success();
}

// What is wrong with the flags is told as such, and before what is wrong with a line of a file.
base::Result<engine::GenerateRequest> RequestOfPrompt(const OpenModel& open, const Prompt& prompt,
                                                      const engine::GeneratorOptions& options,
                                                      const engine::GenerateRequest& base) {
  KV_TRY(const model::ModelShape shape, engine::ShapeServed(open.loaded.model->shape(), options));
  engine::GenerateRequest request = base;
  request.prompt = {0};
  KV_TRY(engine::CheckRequest(request, shape));
  KV_TRY(request.prompt, TokensOfPrompt(open, prompt));
  ApplyOverrides(prompt, request);
  const auto checked = engine::CheckRequest(request, shape);
  if (checked || !prompt.from_file) {
    KV_TRY(checked);
    return request;
  }
  return MakeError(ErrorCode::kBadData, "{}: {}", prompt.source, checked.error().message);
}

base::Result<void> CheckKvBudget(const GenerateFlags& flags, const OpenModel& open,
                                 const Prompt& prompt, const engine::GenerateRequest& request) {
  const engine::GeneratorOptions options = GeneratorOptionsOf(open, flags.model);
  KV_TRY(const model::ModelShape shape, engine::ShapeServed(open.loaded.model->shape(), options));
  const auto checked = engine::CheckBudget(open.loaded.model->shape(), options,
                                           engine::MostPositions(request, shape));
  if (checked) return checked;
  return MakeError(checked.error().code, "--kv-budget: {}{}",
                   prompt.from_file ? prompt.source + ": " : "", checked.error().message);
}

ordered_json SettingsOf(const GenerateFlags& flags, const engine::GenerateRequest& base) {
  ordered_json settings = ToJson(base.sampling);
  settings["max_tokens"] = base.max_tokens;
  settings["overflow"] = base.overflow == engine::Overflow::kRoll ? "roll" : "stop";
  settings["count"] = flags.sampling.count;
  if (flags.best_of > 1) settings["best_of"] = flags.best_of;
  settings["stop"] = base.stops;
  settings["ban"] = flags.bans;
  settings["end_tokens"] = base.end_tokens;
  return settings;
}

}  // namespace

base::Result<Generation> MakeGeneration(const GenerateFlags& flags, const OpenModel& open,
                                        const std::vector<Prompt>& prompts) {
  Generation generation;
  engine::GenerateRequest base;
  base.max_tokens = flags.max_tokens;
  base.overflow = flags.overflow == "roll" ? engine::Overflow::kRoll : engine::Overflow::kStop;
  base.sampling = flags.sampling.options();
  base.choices = flags.sampling.count * flags.best_of;
  base.stops = flags.stops;
  base.top_logprobs = static_cast<std::size_t>(flags.logprobs.value_or(0));
  base.prompt_logprobs = flags.echo && flags.logprobs.has_value();
  KV_TRY(ApplyVocabulary(flags, open, base));
  KV_TRY(const auto constraint, ConstraintOf(flags.constraint));
  if (constraint) {
    constraints::ConstraintCompiler compiler(open.loaded.tokenizer->vocabulary());
    KV_TRY(base.constraint, compiler.Make(*constraint));
  }
  for (const Prompt& prompt : prompts) {
    KV_TRY(auto request,
           RequestOfPrompt(open, prompt, GeneratorOptionsOf(open, flags.model), base));
    KV_TRY(CheckKvBudget(flags, open, prompt, request));
    generation.requests.push_back(std::move(request));
  }
  generation.settings = SettingsOf(flags, base);
  // After everything that can be refused, so that an error is one line.
  generation.seed = SeedOfRun(flags.sampling);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generation.requests[i].seed = prompts[i].seed.value_or(generation.seed);
  }
  return generation;
}

}  // namespace kvasir::cli
