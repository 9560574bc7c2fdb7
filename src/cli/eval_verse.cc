#include "cli/eval_verse.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/utf8.h"
#include "cli/generation.h"
#include "cli/json_output.h"
#include "cli/longest_run.h"
#include "engine/prompt.h"
#include "eval/verse_score.h"

namespace kvasir::cli {
namespace {

using nlohmann::ordered_json;

struct Column {
  eval::VerseScore score;
  double distinct2 = 0;  // Over as many texts as the other column has.
  LongestRun run;        // Of all texts, in the corpus.
};

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

base::Result<std::vector<std::string>> Sample(const OpenModel& open, const ModelFlags& model,
                                              std::uint64_t samples, std::uint64_t seed) {
  Generation generation;
  engine::GenerateRequest request;
  KV_TRY(request.prompt, engine::PromptTokens(*open.loaded.tokenizer, ""));
  request.max_tokens = open.loaded.model->shape().context - request.prompt.size();
  request.sampling.temperature = 1;
  request.choices = samples;
  request.seed = seed;
  request.stops = {"\n"};
  generation.requests.push_back(std::move(request));
  KV_TRY(auto report, RunGeneration(open, model, generation, /*trace=*/false));
  std::vector<std::string> texts;
  for (engine::ChoiceResult& choice : report.results.front().choices) {
    texts.push_back(std::move(choice.text));
  }
  return texts;
}

base::Result<Column> Judge(const std::vector<std::string>& texts, std::size_t compared,
                           std::string_view corpus) {
  Column column;
  KV_TRY(column.score, eval::ScoreVerse(texts));
  KV_TRY(const auto part, eval::ScoreVerse(std::span(texts).first(compared)));
  column.distinct2 = part.distinct2;
  std::string joined;
  for (const std::string& text : texts) joined += text + "\n";
  if (!corpus.empty()) column.run = FindLongestRun(corpus, joined);
  return column;
}

ordered_json ToJson(const Column& column, bool with_run) {
  ordered_json json = {{"texts", column.score.texts}, {"form", column.score.form},
                       {"tones", column.score.tones}, {"rhyme", column.score.rhyme},
                       {"all", column.score.all},     {"distinct2", column.distinct2}};
  if (with_run) {
    json["longest_run"] = {{"characters", column.run.characters}, {"text", column.run.text}};
  }
  return json;
}

void Print(const Column& free, const Column& real, bool with_run) {
  const auto row = [&](std::string_view name, std::uint64_t eval::VerseScore::*count) {
    const auto cell = [&](const eval::VerseScore& score) {
      return fmt::format(
          "{} ({:.1f} %)", score.*count,
          100.0 * static_cast<double>(score.*count) / static_cast<double>(score.texts));
    };
    fmt::print("{:<22}{:>18}{:>18}\n", name, cell(free.score), cell(real.score));
  };
  fmt::print("{:<22}{:>18}{:>18}\n", "", "free samples", "real poems");
  row("texts", &eval::VerseScore::texts);
  row("form", &eval::VerseScore::form);
  row("form, tones", &eval::VerseScore::tones);
  row("form, rhyme", &eval::VerseScore::rhyme);
  row("form, tones, rhyme", &eval::VerseScore::all);
  fmt::print("{:<22}{:>18.4f}{:>18.4f}\n", "distinct-2", free.distinct2, real.distinct2);
  if (!with_run) return;
  fmt::print("{:<22}{:>18}{:>18}\n", "longest copied run", free.run.characters,
             real.run.characters);
  fmt::print("# {}\n# {}\n", free.run.text, real.run.text);
}

}  // namespace

base::Result<int> RunEvalVerse(const OpenModel& open, const ModelFlags& model,
                               const EvalVerseFlags& flags, std::string_view poems, bool json) {
  const std::vector<std::string> real = LinesOf(poems);
  if (real.empty()) {
    return base::MakeError(base::ErrorCode::kBadData, "there is no poem, one a line is needed");
  }
  std::unique_ptr<base::FileBytes> corpus;
  if (!flags.corpus.empty()) {
    KV_TRY(corpus, base::Env::Default().Map(flags.corpus));
    if (base::FirstInvalidUtf8(corpus->text())) {
      return base::MakeError(base::ErrorCode::kBadData, "'{}' is not UTF-8", flags.corpus);
    }
  }
  const std::string_view corpus_text = corpus ? corpus->text() : std::string_view();
  const std::uint64_t seed = SeedOr(flags.seed);
  if (!flags.seed) fmt::print(stderr, "seed {}\n", seed);
  KV_TRY(const auto free, Sample(open, model, flags.samples, seed));
  const std::size_t compared = std::min(free.size(), real.size());
  KV_TRY(const Column free_column, Judge(free, compared, corpus_text));
  KV_TRY(const Column real_column, Judge(real, compared, corpus_text));
  if (json) {
    PrintJson({{"model", open.path},
               {"seed", seed},
               {"compared_texts", compared},
               {"free", ToJson(free_column, corpus != nullptr)},
               {"real", ToJson(real_column, corpus != nullptr)}});
  } else {
    Print(free_column, real_column, corpus != nullptr);
  }
  return 0;
}

}  // namespace kvasir::cli
