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
  // Opens (resumed: appends to) the log; kIo if it cannot.
  static base::Result<std::unique_ptr<TrainProgress>> Open(const std::string& log_path,
                                                           bool resumed,
                                                           const training::Trainer& trainer);
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;

  // After every step: a line in the log, and the bar (or, where stderr is no terminal, a line at
  // each evaluation).
  void Show(const training::Progress& progress);
  void Finish();  // Ends the bar's line.

 private:
  TrainProgress(std::FILE* log, const training::Trainer& trainer);

  std::FILE* log_;
  const std::uint64_t first_step_;
  const std::uint64_t steps_;
  const double tokens_per_step_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point shown_;
  double held_out_ = 0;  // Last evaluation; 0: none yet.
};

// "1:02:03" or "02:03".
std::string ClockText(double seconds);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_PROGRESS_H_
