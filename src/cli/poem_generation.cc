#include "cli/poem_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/env.h"
#include "base/utf8.h"
#include "cli/json_output.h"
#include "cli/longest_run.h"
#include "cli/number_flags.h"
#include "engine/beam_search.h"
#include "engine/best_of.h"
#include "engine/prompt.h"

namespace kvasir::cli {

namespace {

using nlohmann::ordered_json;

// nats
double TotalLogprob(const engine::ChoiceResult& choice) {
  double total = 0;
  for (const engine::GeneratedToken& token : choice.tokens) total += token.logprob;
  return total;
}

base::Result<std::unique_ptr<base::FileBytes>> OpenCorpus(const std::string& path) {
  KV_TRY(auto file, base::Env::Default().Map(path));
  if (const auto offset = base::FirstInvalidUtf8(file->text())) {
    return base::MakeError(base::ErrorCode::kBadData, "'{}' is not UTF-8 at byte {}", path,
                           *offset);
  }
  return file;
}

ordered_json RulesToJson(const constraints::VerseRequest& rules) {
  return {{"tones", rules.tones},
          {"rhyme", rules.rhyme},
          {"rhyme_group", rules.rhyme_group.value_or("")},
          {"without", rules.without}};
}

// A beam search as a report: the best `choices` poems of one request.
base::Result<engine::GenerateReport> RunBeam(const OpenModel& open, const PoemFlags& flags,
                                             const engine::GenerateRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  KV_TRY(auto found,
         engine::BeamSearch(*open.loaded.model, open.loaded.tokenizer->vocabulary(), request,
                            flags.beam, GeneratorOptionsOf(open, flags.model), *open.team));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  found.resize(std::min<std::size_t>(found.size(), request.choices));
  engine::GenerateReport report;
  report.timing.decode_ms = elapsed.count();
  report.usage.prompt_tokens = request.prompt.size();
  for (const auto& choice : found) report.usage.completion_tokens += choice.tokens.size();
  report.results.push_back({std::move(found)});
  return report;
}

}  // namespace

void AddPoemFlags(CLI::App* command, PoemFlags& flags) {
  AddModelFlags(command, flags.model);
  AddSamplingFlags(command, flags.sampling);
  command->add_flag("--tones", flags.rules.tones,
                    "every line keeps the level and oblique tones of regulated verse");
  command->add_flag("--rhyme", flags.rules.rhyme,
                    "even lines rhyme, the first one if it likes: one level rhyme group");
  command
      ->add_option("--rhyme-group", flags.rules.rhyme_group,
                   "which group, by its name or a character that rhymes in it; needs --rhyme")
      ->type_name("CHARACTER");
  command
      ->add_option("--without", flags.rules.without,
                   "switch off one rule of tones or rhyme: " + constraints::VerseRuleNames())
      ->type_name("RULE");
  AddUint(command, "--best-of", flags.best_of, {1, engine::kMaxChoices},
          "draw N poems for each and keep the one most probable to the model; default 1");
  CLI::Option* beam =
      AddUint(command, "--beam", flags.beam, {1, engine::kMaxBeams},
              "draw nothing: keep the N most probable beginnings, and show the best --count poems");
  for (const char* of_draws :
       {"--temperature", "--top-k", "--top-p", "--min-p", "--repeat-penalty", "--seed"}) {
    beam->excludes(command->get_option(of_draws));
  }
  command
      ->add_option("--corpus", flags.corpus,
                   "tell the longest run of each poem that stands in this text")
      ->type_name("FILE");
  command->add_flag("--trace", flags.trace,
                    "tell on stderr what each step computed, read and held");
  command->add_flag("--json", flags.json, "one JSON document");
}

base::Result<engine::GenerateRequest> PoemRequest(const OpenModel& open,
                                                  const SamplingFlags& sampling,
                                                  std::unique_ptr<constraints::Matcher> form,
                                                  std::uint64_t best_of) {
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(*open.loaded.tokenizer, ""));
  const std::uint64_t context = open.loaded.model->shape().context;
  const std::uint64_t tokens = form->MaxRemainingTokens().value();
  if (tokens > context - request.prompt.size()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "this form takes {} tokens, but the model's context holds only {}",
                           tokens, context - request.prompt.size());
  }
  if (sampling.count > engine::kMaxChoices / best_of) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "{} poems as the best of {} each are too many: at most {} are drawn",
                           sampling.count, best_of, engine::kMaxChoices);
  }
  request.max_tokens = tokens;
  request.sampling = sampling.options();
  request.choices = sampling.count * best_of;
  request.constraint = std::move(form);
  return request;
}

base::Result<int> RunPoems(const OpenModel& open, const PoemFlags& flags,
                           std::unique_ptr<constraints::Matcher> form,
                           const nlohmann::ordered_json& settings, bool line_breaks) {
  Generation generation;
  if (flags.beam != 0 && (flags.best_of != 1 || flags.trace || flags.sampling.count > flags.beam)) {
    return base::MakeError(
        base::ErrorCode::kUsage,
        "--beam {} goes with neither --best-of nor --trace, and shows at most {} "
        "poems",
        flags.beam, flags.beam);
  }
  KV_TRY(auto request, PoemRequest(open, flags.sampling, std::move(form), flags.best_of));
  KV_TRY(engine::CheckRequest(request, open.loaded.model->shape()));
  std::unique_ptr<base::FileBytes> corpus;
  if (!flags.corpus.empty()) {
    KV_TRY(corpus, OpenCorpus(flags.corpus));
  }
  generation.seed = flags.beam == 0 ? SeedOfRun(flags.sampling) : 0;
  request.seed = generation.seed;
  generation.settings = ToJson(request.sampling);
  generation.settings["count"] = flags.sampling.count;
  generation.settings["best_of"] = flags.best_of;
  generation.settings["beam"] = flags.beam;
  generation.settings.update(settings);
  generation.settings.update(RulesToJson(flags.rules));
  generation.requests.push_back(std::move(request));
  KV_TRY(auto report, flags.beam == 0 ? RunGeneration(open, flags.model, generation, flags.trace)
                                      : RunBeam(open, flags, generation.requests.front()));
  std::vector<engine::ChoiceResult>& choices = report.results.front().choices;
  choices = engine::BestOf(std::move(choices), flags.best_of);
  std::vector<LongestRun> runs;
  for (const engine::ChoiceResult& choice : choices) {
    if (corpus) runs.push_back(FindLongestRun(corpus->text(), choice.text));
  }
  if (flags.json) {
    auto document = ToJson(open, flags.model, generation, report);
    if (flags.beam != 0) {  // Not counted by the search.
      document.erase("cache");
      document.erase("work");
    }
    for (std::size_t i = 0; i < choices.size(); ++i) {
      ordered_json& choice = document["choices"][i];
      choice["logprob"] = TotalLogprob(choices[i]);
      if (corpus) {
        choice["longest_run"] = {{"characters", runs[i].characters}, {"text", runs[i].text}};
      }
    }
    PrintJson(document);
    return 0;
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (line_breaks && i > 0) fmt::print("\n");
    fmt::print("{}\n", line_breaks ? BreakVerseLines(choices[i].text) : choices[i].text);
    if (corpus) {
      fmt::print("# the longest run that stands in the corpus: {} characters, {}\n",
                 runs[i].characters, runs[i].text);
    }
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
