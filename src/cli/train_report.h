// The report of a finished training run: a folder with a page of Markdown and a plot.
#ifndef KVASIR_CLI_TRAIN_REPORT_H_
#define KVASIR_CLI_TRAIN_REPORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "cli/train_corpus.h"
#include "cli/train_log.h"
#include "cli/train_samples.h"
#include "eval/copied_lines.h"

namespace kvasir::cli {

// What a report tells of the run itself.
struct TrainedRun {
  std::string name;       // general.name
  std::string output;     // The model's file, as it was named.
  std::string command;    // One that repeats the run.
  std::string shape;      // In words.
  std::string how_ended;  // In words.
  std::uint64_t parameters = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t steps = 0;  // Done.
  std::uint64_t tokens_per_step = 0;
  std::uint64_t best_step = 0;      // 0: none was measured.
  std::optional<double> best_loss;  // nats per held-out token
  double seconds = 0;               // Of this process, which did steps first_step + 1 … steps.
  std::uint64_t first_step = 0;
};

// What the model that was kept is worth.
struct TrainFigures {
  std::optional<double> perplexity, bits_per_char;  // Of the held-out text, if it was measured.
  eval::CopiedLines generated;                      // Lines of texts that the model wrote freely.
  eval::CopiedLines held_out;                       // The same of the held-out text: by chance.
  std::uint64_t longest_run = 0;                    // Characters of a generated text in a row that
  std::string longest_text;                         // stand in the training text: these.
  std::vector<std::string> texts;                   // Some of what it wrote.
};

// Bits a character, of a mean loss in nats over all tokens of a text but the first, which has
// `first_characters`. 0 for a text of no more.
double BitsPerCharacter(double nll, std::uint64_t tokens, std::uint64_t characters,
                        std::uint64_t first_characters);

// Loads the model file and lets it write. Errors as LoadModel and DrawSamples.
base::Result<TrainFigures> MeasureTrained(base::Env& env, const std::string& model_path,
                                          const TrainCorpus& corpus,
                                          std::optional<double> best_loss, base::ThreadTeam& team);

// The page, with figures as MeasureTrained has them; it shows `loss.svg` of its own folder.
std::string TrainReportText(const TrainedRun& run, const TrainCorpus& corpus,
                            const TrainFigures& figures, std::span<const TrainLogLine> log,
                            std::span<const Sample> samples);

// Writes report.md and loss.svg into the folder, which is made if it is not there. kIo.
base::Result<void> WriteTrainReport(base::Env& env, const std::string& folder,
                                    const TrainedRun& run, const TrainCorpus& corpus,
                                    const TrainFigures& figures,
                                    const std::vector<TrainLogLine>& log,
                                    std::span<const Sample> samples);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_REPORT_H_
