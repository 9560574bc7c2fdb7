// What a training run shows while it runs: a progress bar on a terminal, and a log file.
#ifndef KVASIR_CLI_TRAIN_PROGRESS_H_
#define KVASIR_CLI_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/result.h"
#include "training/run.h"

namespace kvasir::cli {

// Single-threaded.
class TrainProgress {
 public:
  // Opens a new log or, resumed, goes on with what the old one holds up to the trainer's steps.
  // kIo if it cannot; kBadData if a file that is to be continued is no such log.
  static base::Result<std::unique_ptr<TrainProgress>> Open(const std::string& log_path,
                                                           bool resumed,
                                                           const training::Trainer& trainer);
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;

  // After every step: a line in the log, and the bar (or, where stderr is no terminal, a line at
  // each evaluation).
  void Show(const training::Progress& progress);
  // A line of its own beside the bar.
  void Note(const std::string& text);
  // Ends the bar's line. kIo if the log lacks lines that could not be written.
  base::Result<void> Finish();

 private:
  TrainProgress(std::FILE* log, std::string log_path, const training::Trainer& trainer);

  std::FILE* log_;
  const std::string log_path_;
  const std::uint64_t first_step_;
  const std::uint64_t steps_;
  const double tokens_per_step_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point shown_;
  int log_errno_ = 0;    // Of the first line that was not written.
  double held_out_ = 0;  // Last evaluation; 0: none yet.
};

// "1:02:03" or "02:03".
std::string ClockText(double seconds);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_PROGRESS_H_
