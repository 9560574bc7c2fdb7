#include "cli/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/character_count.h"
#include "cli/json_output.h"
#include "cli/longest_run.h"
#include "cli/train_files.h"
#include "cli/train_progress.h"
#include "model/model_file.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kTexts = 32;       // That the model writes for the report.
constexpr std::size_t kShownTexts = 4;     // Of these.
constexpr std::size_t kShownSamples = 20;  // Of those drawn while it was trained.
constexpr std::size_t kRecentSteps = 100;  // Whose mean is the training loss.
constexpr double kLn2 = 0.69314718055994531;

// 1234567 as 1,234,567.
std::string Grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

// A block that shows text as it is, whatever backticks are in it.
std::string Block(std::string_view text, std::string_view language) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fmt::format("{}{}\n{}{}{}\n\n", fence, language, text, text.ends_with('\n') ? "" : "\n",
                     fence);
}

// Text inside a table's cell.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : OneLine(text)) {
    if (c == '|' || c == '`' || c == '<' || c == '*' || c == '_') out += '\\';
    out += c;
  }
  return out;
}

std::string Share(const eval::CopiedLines& lines) {
  if (lines.lines == 0) return "no such line";
  return fmt::format("{} of {}: {:.1f} %", lines.copied, lines.lines,
                     100.0 * static_cast<double>(lines.copied) / static_cast<double>(lines.lines));
}

std::string RunTable(const TrainedRun& run, const TrainCorpus& corpus) {
  const std::uint64_t seen = run.steps * run.tokens_per_step;
  const auto tokens = static_cast<double>(corpus.text.size());
  const std::uint64_t own_steps = run.steps - run.first_step;
  std::string out = "| | |\n|---|---|\n";
  const auto row = [&](const char* what, const std::string& value) {
    out += fmt::format("| {} | {} |\n", what, value);
  };
  row("model", fmt::format("{}: {}; {} parameters, vocabulary of {}", Cell(run.output), run.shape,
                           Grouped(run.parameters), Grouped(run.vocabulary)));
  row("text", fmt::format("{} characters of {} {}, {} tokens: {:.2f} a parameter",
                          Grouped(base::CountCharacters(corpus.text_bytes)), corpus.files.size(),
                          corpus.files.size() == 1 ? "file" : "files", Grouped(corpus.text.size()),
                          tokens / static_cast<double>(run.parameters)));
  row("held out", corpus.split ? DescribeHeldOut(corpus)
                  : corpus.held_out.empty()
                      ? "nothing"
                      : fmt::format("{} characters of a file of its own",
                                    Grouped(base::CountCharacters(corpus.held_out_bytes))));
  row("trained", fmt::format("{} steps of {} tokens: {} in all, {:.1f} times the text; {}",
                             Grouped(run.steps), Grouped(run.tokens_per_step), Grouped(seen),
                             static_cast<double>(seen) / tokens, run.how_ended));
  row("time",
      fmt::format(
          "{} for {} steps, {:.0f} tokens a second", ClockText(run.seconds), Grouped(own_steps),
          static_cast<double>(own_steps * run.tokens_per_step) / std::max(run.seconds, 1e-9)));
  return out + "\n";
}

std::string LossTable(const TrainedRun& run, const TrainFigures& figures,
                      std::span<const TrainLogLine> log) {
  std::string out =
      "| measured on | loss, nats a token | perplexity | bits a character |\n|---|---|---|---|\n";
  if (run.best_loss) {
    out += fmt::format(
        "| held-out text, step {} (the model that was kept) | {:.4f} | {:.2f} | "
        "{:.4f} |\n",
        Grouped(run.best_step), *run.best_loss, figures.perplexity.value_or(0),
        figures.bits_per_char.value_or(0));
  }
  const auto recent = log.last(std::min(log.size(), kRecentSteps));
  double sum = 0;
  for (const TrainLogLine& line : recent) sum += line.loss;
  if (!recent.empty()) {
    const double mean = sum / static_cast<double>(recent.size());
    out += fmt::format("| training text, mean of the last {} steps | {:.4f} | {:.2f} | |\n",
                       recent.size(), mean, std::exp(mean));
  }
  return out + "\n![Loss and learning rate over the steps](loss.svg)\n\n";
}

std::string CopiedTable(const TrainFigures& figures) {
  return fmt::format(
      "Lines of 12 characters or more that stand in the training text, byte for byte:\n\n"
      "| lines | in the training text |\n|---|---|\n"
      "| generated ({} texts) | {} |\n| of the held-out text | {} |\n\n"
      "The longest run of a generated line that the training text has: {} characters, {}.\n\n",
      kTexts, Share(figures.generated), Share(figures.held_out), figures.longest_run,
      figures.longest_run == 0 ? "none" : "“" + Cell(figures.longest_text) + "”");
}

std::string SamplesText(std::span<const Sample> samples) {
  if (samples.empty()) return "";
  std::string out = "## While it was trained\n\n";
  // The first, the last, and some evenly between.
  const std::size_t shown = std::min(samples.size(), kShownSamples);
  for (std::size_t i = 0; i < shown; ++i) {
    const Sample& sample = samples[shown == 1 ? 0 : i * (samples.size() - 1) / (shown - 1)];
    out += fmt::format("Step {}:\n\n", Grouped(sample.step)) +
           Block(sample.prompt + sample.text, "text");
  }
  return out;
}

}  // namespace

double BitsPerCharacter(double nll, std::uint64_t tokens, std::uint64_t characters,
                        std::uint64_t first_characters) {
  if (tokens == 0 || characters <= first_characters) return 0;
  return nll * static_cast<double>(tokens - 1) / kLn2 /
         static_cast<double>(characters - first_characters);
}

base::Result<TrainFigures> MeasureTrained(base::Env& env, const std::string& model_path,
                                          const TrainCorpus& corpus,
                                          std::optional<double> best_loss, base::ThreadTeam& team) {
  KV_TRY(const model::LoadedModel loaded, model::LoadModel(env, model_path));
  const tokenizer::Tokenizer& tokenizer = *loaded.tokenizer;
  TrainFigures figures;
  if (best_loss) {
    const std::string first(tokenizer.vocabulary().Bytes(corpus.held_out.front()));
    figures.perplexity = std::exp(*best_loss);
    figures.bits_per_char = BitsPerCharacter(*best_loss, corpus.held_out.size(),
                                             base::CountCharacters(corpus.held_out_bytes),
                                             base::CountCharacters(first));
  }
  KV_TRY(const auto choices,
         DrawSamples(*loaded.model, tokenizer, team, SampleSettings{.count = kTexts}));
  std::vector<std::string_view> lines;
  std::string all;
  for (const engine::ChoiceResult& choice : choices) {
    const bool whole = choice.finish != engine::FinishReason::kLength;
    const auto own = eval::TellingLines(choice.text, whole);
    lines.insert(lines.end(), own.begin(), own.end());
    all += choice.text + "\n";
    if (figures.texts.size() < kShownTexts) figures.texts.push_back(choice.text);
  }
  figures.generated = eval::CountCopied(corpus.text_bytes, lines);
  figures.held_out = eval::CountCopied(corpus.text_bytes,
                                       eval::TellingLines(corpus.held_out_bytes, /*whole=*/true));
  LongestRun run = FindLongestRun(corpus.text_bytes, all);
  figures.longest_run = run.characters;
  figures.longest_text = std::move(run.text);
  return figures;
}

std::string TrainReportText(const TrainedRun& run, const TrainCorpus& corpus,
                            const TrainFigures& figures, std::span<const TrainLogLine> log,
                            std::span<const Sample> samples) {
  std::string out = fmt::format("# {}\n\n", Cell(run.name));
  out += RunTable(run, corpus);
  out += "## Loss\n\n" + LossTable(run, figures, log);
  const SampleSettings settings;
  out += "## What it writes\n\n";
  out += Block(fmt::format("kvasir generate -m {} -p \"\" -n {} --temperature {:g} --seed {} "
                           "--count {}",
                           run.output, settings.tokens, settings.temperature, settings.seed,
                           figures.texts.size()),
               "sh");
  for (const std::string& text : figures.texts) out += Block(text, "text");
  out += "## What it has by heart\n\n" + CopiedTable(figures);
  out += SamplesText(samples);
  out += "## The run\n\n" + Block(run.command, "sh");
  return out;
}

base::Result<void> WriteTrainReport(base::Env& env, const std::string& folder,
                                    const TrainedRun& run, const TrainCorpus& corpus,
                                    const TrainFigures& figures,
                                    const std::vector<TrainLogLine>& log,
                                    std::span<const Sample> samples) {
  KV_TRY(env.MakeDirectories(folder));
  KV_TRY(base::WriteFileAtomic(env, TrainPlotPath(folder), DrawTrainLog(run.name, log)));
  return base::WriteFileAtomic(env, TrainReportPath(folder),
                               TrainReportText(run, corpus, figures, log, samples));
}

}  // namespace kvasir::cli
