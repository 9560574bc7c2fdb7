// The log of a training run: one line of numbers a step, tab-separated.
#ifndef KVASIR_CLI_TRAIN_LOG_H_
#define KVASIR_CLI_TRAIN_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::cli {

inline constexpr const char* kTrainLogHeading =
    "step\tloss\tgradient_norm\tlearning_rate\ttokens_per_s\theld_out";

struct TrainLogLine {
  std::uint64_t step = 0;
  double loss = 0;           // nats a token
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  double tokens_per_s = 0;
  std::optional<double> held_out = std::nullopt;  // nats a token

  std::string Text() const;  // With its newline.
};

// The steps of a log, in its order. kIo, or kBadData naming the file and the first line that is
// not as Text writes it; what follows the last newline is not looked at.
base::Result<std::vector<TrainLogLine>> ReadTrainLog(base::Env& env, const std::string& path);

// A run's loss, on its text and on what was held out, and its learning rate: an SVG document. Of
// more than 400 steps, each point is the mean of a stretch.
std::string DrawTrainLog(const std::string& title, const std::vector<TrainLogLine>& lines);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_LOG_H_
