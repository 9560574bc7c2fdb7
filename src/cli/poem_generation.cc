#include "cli/poem_generation.h"

#include <fmt/format.h>

#include <utility>

#include "cli/json_output.h"
#include "engine/prompt.h"

namespace kvasir::cli {

void AddPoemFlags(CLI::App* command, PoemFlags& flags) {
  AddModelFlags(command, flags.model);
  AddSamplingFlags(command, flags.sampling);
  command->add_flag("--trace", flags.trace,
                    "tell on stderr what each step computed, read and held");
  command->add_flag("--json", flags.json, "one JSON document");
}

base::Result<engine::GenerateRequest> PoemRequest(const OpenModel& open,
                                                  const SamplingFlags& sampling,
                                                  std::unique_ptr<constraints::Matcher> form) {
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(*open.loaded.tokenizer, ""));
  const std::uint64_t context = open.loaded.model->shape().context;
  const std::uint64_t tokens = form->MaxRemainingTokens().value();
  if (tokens > context - request.prompt.size()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "this form takes {} tokens, but the model's context holds only {}",
                           tokens, context - request.prompt.size());
  }
  request.max_tokens = tokens;
  request.sampling = sampling.options();
  request.choices = sampling.count;
  request.constraint = std::move(form);
  return request;
}

base::Result<int> RunPoems(const OpenModel& open, const PoemFlags& flags,
                           std::unique_ptr<constraints::Matcher> form,
                           const nlohmann::ordered_json& settings, bool line_breaks) {
  Generation generation;
  KV_TRY(auto request, PoemRequest(open, flags.sampling, std::move(form)));
  KV_TRY(engine::CheckRequest(request, open.loaded.model->shape()));
  generation.seed = SeedOfRun(flags.sampling);
  request.seed = generation.seed;
  generation.settings = ToJson(request.sampling);
  generation.settings["count"] = request.choices;
  generation.settings.update(settings);
  generation.requests.push_back(std::move(request));
  KV_TRY(const auto report, RunGeneration(open, flags.model, generation, flags.trace));
  if (flags.json) {
    PrintJson(ToJson(open, flags.model, generation, report));
    return 0;
  }
  bool first = true;
  for (const engine::ChoiceResult& choice : report.results.front().choices) {
    if (line_breaks && !first) fmt::print("\n");
    first = false;
    fmt::print("{}\n", line_breaks ? BreakVerseLines(choice.text) : choice.text);
  }
  return 0;
}

std::string BreakVerseLines(std::string_view poem) {
  std::string lines;
  for (std::size_t i = 0; i < poem.size();) {
    const std::string_view rest = poem.substr(i);
    const bool mark = rest.starts_with("，") || rest.starts_with("。");
    const std::size_t bytes = mark ? std::string_view("，").size() : 1;
    lines += rest.substr(0, bytes);
    i += bytes;
    if (mark && i < poem.size()) lines += '\n';
  }
  return lines;
}

}  // namespace kvasir::cli
