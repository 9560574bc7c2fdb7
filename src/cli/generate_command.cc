// kvasir generate: continue one text, or many at once.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/constraint_flags.h"
#include "cli/generation.h"
#include "cli/interactive.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "cli/prompt_source.h"
#include "cli/sampling_flags.h"
#include "cli/stdout_stream.h"
#include "cli/terminal_text.h"
#include "cli/text_flags.h"
#include "constraints/drawable_tokens.h"
#include "engine/best_of.h"
#include "engine/prompt.h"
#include "engine/sequence_pool.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using nlohmann::ordered_json;

struct GenerateFlags {
  ModelFlags model;
  ConstraintFlags constraint;
  SamplingFlags sampling;
  PromptFlags prompt;
  std::uint64_t max_tokens = 64;
  std::string overflow = "stop";
  std::vector<std::string> stops;
  std::vector<std::string> bans;
  std::optional<std::uint64_t> eos;
  std::optional<std::uint64_t> logprobs;
  std::uint64_t best_of = 1;
  bool ignore_eos = false;
  bool echo = false;
  bool stream = false;
  bool trace = false;
  bool interactive = false;
  bool json = false;
};

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

// What --stream prints as tokens come.
base::Result<void> StreamToken(const GenerateFlags& flags, const OpenModel& open,
                               const engine::TokenEvent& event) {
  if (!flags.json) {
    fmt::print("{}", event.text);
    return FlushStdout();
  }
  ordered_json line = {{"index", event.choice}, {"text", event.text}};
  line.update(ToJson(open, event.token));
  if (!flags.logprobs) line.erase("top");
  if (event.request > 0 || flags.prompt.prompts_file) line["prompt_index"] = event.request;
  line["finish_reason"] =
      event.finish ? ordered_json(engine::FinishReasonName(*event.finish)) : ordered_json();
  fmt::print("{}\n", DumpLine(line));
  return FlushStdout();
}

void PrintLogprobs(const OpenModel& open, std::span<const engine::GeneratedToken> tokens) {
  const tokenizer::Vocabulary& vocabulary = open.loaded.tokenizer->vocabulary();
  for (const engine::GeneratedToken& token : tokens) {
    fmt::print("{} {:9.5f} ", PadRight(Visible(TokenText(vocabulary, token.id)), 6), token.logprob);
    for (const sampling::TokenLogProb& other : token.top) {
      fmt::print(" {} {:.2f}%", Visible(TokenText(vocabulary, other.id)), 100.0 * other.prob);
    }
    fmt::print("\n");
  }
}

void PrintTexts(const GenerateFlags& flags, const OpenModel& open,
                const std::vector<Prompt>& prompts, const engine::GenerateReport& report) {
  bool first = true;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    for (const engine::ChoiceResult& choice : report.results[i].choices) {
      if (!first) fmt::print("---\n");
      first = false;
      fmt::print("{}{}\n", flags.echo ? prompts[i].text : "", choice.text);
      if (!flags.logprobs) continue;
      PrintLogprobs(open, report.results[i].prompt);
      PrintLogprobs(open, choice.tokens);
    }
  }
}

// generate -i. Each turn is what `generate -p` makes of the whole text so far, with one seed; the
// generator stays, so what its cache holds is not computed again.
base::Result<int> RunTurns(const GenerateFlags& flags) {
  if (flags.json || flags.trace || flags.prompt.prompts_file || flags.sampling.count > 1) {
    return MakeError(ErrorCode::kUsage,
                     "-i continues one text: it does not go with --json, --trace, --count or "
                     "--prompts-file");
  }
  KV_TRY(std::vector<Prompt> prompts, ReadPrompts(flags.prompt));
  KV_TRY(const OpenModel open, Open(flags.model));
  GenerateFlags turn = flags;
  turn.sampling.seed = SeedOfRun(flags.sampling);
  KV_TRY(const auto generator,
         engine::Generator::Make(*open.loaded.model, open.loaded.tokenizer->vocabulary(),
                                 *open.team, GeneratorOptionsOf(open, flags.model)));
  engine::Observer observer;
  observer.on_token = [&](const engine::TokenEvent& event) {
    return StreamToken(turn, open, event);
  };
  return RunInteractive(stdin, prompts.front().text,
                        [&](const std::string& text) -> base::Result<std::string> {
                          prompts.front().text = text;
                          KV_TRY(const Generation generation, MakeGeneration(turn, open, prompts));
                          KV_TRY(const auto report, generator->Run(generation.requests, observer));
                          return report.results.front().choices.front().text;
                        });
}

base::Result<void> CheckBestOf(const GenerateFlags& flags) {
  if (flags.best_of == 1) return base::Success();
  if (flags.stream || flags.interactive) {
    return MakeError(ErrorCode::kUsage,
                     "--best-of chooses when all texts are written: it does not go with --stream "
                     "or -i");
  }
  if (flags.sampling.count <= engine::kMaxChoices / flags.best_of) return base::Success();
  return MakeError(ErrorCode::kUsage,
                   "{} texts as the best of {} each are too many: at most {} are drawn",
                   flags.sampling.count, flags.best_of, engine::kMaxChoices);
}

base::Result<int> RunGenerate(const GenerateFlags& flags) {
  KV_TRY(CheckBestOf(flags));
  if (flags.interactive) return RunTurns(flags);
  KV_TRY(const std::vector<Prompt> prompts, ReadPrompts(flags.prompt));
  if (flags.stream && !flags.json && prompts.size() * flags.sampling.count > 1) {
    return MakeError(ErrorCode::kUsage,
                     "--stream shows one continuation, but {} are asked for: add --json",
                     prompts.size() * flags.sampling.count);
  }
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(const Generation generation, MakeGeneration(flags, open, prompts));
  engine::Observer observer;
  if (flags.stream) {
    if (flags.echo && !flags.json) fmt::print("{}", prompts.front().text);
    observer.on_token = [&](const engine::TokenEvent& event) {
      return StreamToken(flags, open, event);
    };
  }
  KV_TRY(auto report, RunGeneration(open, flags.model, generation, flags.trace, observer));
  for (engine::RequestResult& result : report.results) {
    result.choices = engine::BestOf(std::move(result.choices), flags.best_of);
  }
  if (flags.stream) {
    if (!flags.json) fmt::print("\n");
    return 0;
  }
  if (!flags.json) {
    PrintTexts(flags, open, prompts, report);
    return 0;
  }
  ordered_json json = ToJson(open, flags.model, generation, report);
  if (flags.echo) {
    auto texts = ordered_json::array();
    for (const Prompt& prompt : prompts) texts.push_back(prompt.text);
    json["prompts"] = std::move(texts);
  }
  if (flags.echo && flags.logprobs) {
    auto prompts_scored = ordered_json::array();
    for (const engine::RequestResult& result : report.results) {
      auto tokens = ordered_json::array();
      for (const engine::GeneratedToken& token : result.prompt) {
        tokens.push_back(ToJson(open, token));
      }
      prompts_scored.push_back(std::move(tokens));
    }
    json["prompt_logprobs"] = std::move(prompts_scored);
  }
  PrintJson(json);
  return 0;
}

}  // namespace

void AddGenerateCommand(CommandSet& commands) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command =
      commands.Add("generate", "Continue a text, or many texts in one batch",
                   "kvasir generate -p 大漠孤烟直， -n 48 --temperature 0.8 --seed 7");
  AddModelFlags(command, flags->model);
  AddKvBudgetFlag(command, flags->model);
  AddPromptFlags(command, flags->prompt);
  AddUint(command, "-n,--max-tokens", flags->max_tokens, {.min = 1},
          "most tokens to generate; default 64");
  command
      ->add_option(
          "--overflow", flags->overflow,
          "at the end of the model's context: stop (default), or roll: go on from the last "
          "half of it and more")
      ->type_name("stop|roll")
      ->check(CLI::IsMember({"stop", "roll"}));
  AddSamplingFlags(command, flags->sampling);
  AddConstraintFlags(command, flags->constraint);
  AddTexts(command, "--stop", flags->stops, "end the text before this; may be repeated");
  AddUint(command, "--eos", flags->eos, {},
          "id of the token that ends a text; default: the model file's");
  command->add_flag("--ignore-eos", flags->ignore_eos, "never draw the end token");
  AddTexts(command, "--ban", flags->bans, "never draw tokens that hold this; may be repeated");
  AddUint(command, "--logprobs", flags->logprobs, {0, std::uint64_t{1} << 32},
          "report each token's log-probability and this many alternatives");
  AddUint(command, "--best-of", flags->best_of, {1, engine::kMaxChoices},
          "write so many for each text shown, the one most probable by token; default 1");
  command->add_flag("--echo", flags->echo,
                    "print the prompt first; with --logprobs its tokens' too, after the first");
  command->add_flag("--stream", flags->stream,
                    "print as tokens come; with --json one line a token");
  command->add_flag("--trace", flags->trace,
                    "tell on stderr what each step computed, read and held");
  command->add_flag(
      "-i,--interactive", flags->interactive,
      "write a text in turns: your lines from standard input, the model's after each");
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunGenerate(*flags); });
}

}  // namespace kvasir::cli
