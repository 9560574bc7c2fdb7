// kvasir generate: continue one text, or many at once.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/generate_flags.h"
#include "cli/generate_request.h"
#include "cli/generation.h"
#include "cli/interactive.h"
#include "cli/json_output.h"
#include "cli/prompt_source.h"
#include "cli/sampling_flags.h"
#include "cli/stdout_stream.h"
#include "cli/terminal_text.h"
#include "engine/best_of.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using nlohmann::ordered_json;

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
  if (flags.interactive) return RunInteractive(flags, stdin);
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
  AddGenerateFlags(command, *flags);
  commands.OnRun(command, [flags] { return RunGenerate(*flags); });
}

}  // namespace kvasir::cli
