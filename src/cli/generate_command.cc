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
#include "cli/generate_session.h"
#include "cli/generation.h"
#include "cli/interactive.h"
#include "cli/json_output.h"
#include "cli/prompt_source.h"
#include "cli/sampling_flags.h"
#include "cli/stdout_stream.h"
#include "cli/store_flags.h"
#include "cli/terminal_text.h"
#include "engine/best_of.h"
#include "engine/sequence_pool.h"

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

// What is asked of the model, and what it rests on.
struct Run {
  std::vector<Prompt> prompts;  // Empty where a session is loaded.
  std::unique_ptr<store::QueuedStore> store;
  SessionGeneration session;
  store::SessionModel session_model;  // Where one is loaded or saved.
};

base::Result<Run> PrepareRun(const GenerateFlags& flags, const OpenModel& open,
                             std::vector<Prompt> prompts) {
  Run run;
  run.prompts = std::move(prompts);
  if (!flags.session.save.empty() || !flags.session.load.empty()) {
    KV_TRY(run.session_model, SessionModelOf(flags, open));
  }
  if (flags.session.load.empty()) {
    KV_TRY(run.session.generation, MakeGeneration(flags, open, run.prompts));
    KV_TRY(run.session.constraint, ConstraintOf(flags.constraint));
  } else {
    KV_TRY(run.session, LoadSession(flags, open, run.session_model));
  }
  KV_TRY(run.store, OpenStore(flags.store));
  return run;
}

base::Result<engine::GenerateReport> Write(const GenerateFlags& flags, const OpenModel& open,
                                           Run& run) {
  engine::GeneratorOptions options = GeneratorOptionsOf(open, flags.model);
  options.store = run.store.get();
  if (run.store || run.session_model.contract != 0) {
    KV_TRY(options.weights, HashOfModel(open.path));
  }
  KV_TRY(const auto generator,
         engine::Generator::Make(*open.loaded.model, open.loaded.tokenizer->vocabulary(),
                                 *open.team, options));
  if (!flags.session.load.empty()) {
    KV_TRY(const model::ModelShape shape, engine::ShapeServed(open.loaded.model->shape(), options));
    const std::vector<base::TokenId>& text = run.session.generation.requests.front().prompt;
    generator->ImportBlocks(engine::CachedPart(text, shape.context), run.session.blocks);
  }
  engine::Observer observer;
  if (flags.stream) {
    if (flags.echo && !flags.json) fmt::print("{}", run.prompts.front().text);
    observer.on_token = [&](const engine::TokenEvent& event) {
      return StreamToken(flags, open, event);
    };
  }
  KV_TRY(auto report,
         RunGeneration(*generator, open, run.session.generation, flags.trace, observer));
  if (!flags.session.save.empty()) {
    KV_TRY(SaveSession(flags, open, run.session_model, run.session.constraint,
                       run.session.generation.requests.front(), report, *generator));
  }
  return report;
}

ordered_json ReportToJson(const GenerateFlags& flags, const OpenModel& open, const Run& run,
                          const engine::GenerateReport& report) {
  ordered_json json = ToJson(open, flags.model, run.session.generation, report);
  if (run.store) json["store"] = ToJson(run.store->stats());
  if (flags.echo) {
    auto texts = ordered_json::array();
    for (const Prompt& prompt : run.prompts) texts.push_back(prompt.text);
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
  return json;
}

base::Result<int> RunGenerate(const CLI::App* command, const GenerateFlags& flags) {
  KV_TRY(CheckBestOf(flags));
  KV_TRY(CheckSessionFlags(command, flags));
  if (flags.interactive) {
    if (flags.store.address.empty()) return RunInteractive(flags, stdin);
    return MakeError(ErrorCode::kUsage, "-i keeps its text in memory: it has no use for --store");
  }
  std::vector<Prompt> prompts;
  if (flags.session.load.empty()) {
    KV_TRY(prompts, ReadPrompts(flags.prompt));
  }
  if (flags.stream && !flags.json && prompts.size() * flags.sampling.count > 1) {
    return MakeError(ErrorCode::kUsage,
                     "--stream shows one continuation, but {} are asked for: add --json",
                     prompts.size() * flags.sampling.count);
  }
  KV_TRY(const OpenModel open, Open(flags.model));
  KV_TRY(Run run, PrepareRun(flags, open, std::move(prompts)));
  KV_TRY(auto report, Write(flags, open, run));
  for (engine::RequestResult& result : report.results) {
    result.choices = engine::BestOf(std::move(result.choices), flags.best_of);
  }
  if (flags.stream) {
    if (!flags.json) fmt::print("\n");
  } else if (flags.json) {
    PrintJson(ReportToJson(flags, open, run, report));
  } else {
    PrintTexts(flags, open, run.prompts, report);
  }
  return 0;
}

}  // namespace

void AddGenerateCommand(CommandSet& commands) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command =
      commands.Add("generate", "Continue a text, or many texts in one batch",
                   "kvasir generate -p 大漠孤烟直， -n 48 --temperature 0.8 --seed 7");
  AddGenerateFlags(command, *flags);
  commands.OnRun(command, [command, flags] { return RunGenerate(command, *flags); });
}

}  // namespace kvasir::cli
