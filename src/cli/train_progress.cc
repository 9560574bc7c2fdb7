#include "cli/train_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/train_log.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kBarWidth = 24;  // characters
constexpr auto kRedraw = std::chrono::milliseconds(200);

// Not by {fmt}, which throws where stderr takes no more: the run goes on without.
void Tell(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// Bytes of a log's heading and of its lines up to step `last`, which end where a line of a later
// step begins, or one that a crash cut. 0: it has no line; none: it is not such a log.
std::optional<std::uintmax_t> BytesUpTo(std::istream& log, std::uint64_t last) {
  std::string line;
  if (!std::getline(log, line)) return 0;
  if (line != kTrainLogHeading || log.eof()) return std::nullopt;
  std::uintmax_t bytes = line.size() + 1;
  while (std::getline(log, line) && !log.eof()) {
    std::uint64_t step = 0;
    const char* end = line.data() + line.size();
    const auto [rest, error] = std::from_chars(line.data(), end, step);
    if (error != std::errc() || rest == end || *rest != '\t' || step > last) break;
    bytes += line.size() + 1;
  }
  return bytes;
}

// Cuts from the log what a run wrote after its checkpoint: the resumed run takes these steps again.
base::Result<void> CutLog(const std::string& path, std::uint64_t last) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return base::Success();
  std::ifstream log(path, std::ios::binary);
  if (!log) return base::Success();  // Opening it to write will tell why.
  const auto bytes = BytesUpTo(log, last);
  if (!bytes) {
    return base::WithHint(
        base::MakeError(base::ErrorCode::kBadData,
                        "'{}' is not the log of a training run, so it is not continued", path),
        "name another file with --log");
  }
  std::filesystem::resize_file(path, *bytes, error);
  if (!error) return base::Success();
  return base::MakeError(base::ErrorCode::kIo, "cannot write the log '{}': {}", path,
                         error.message());
}

}  // namespace

std::string ClockText(double seconds) {
  const auto s = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 359999.0));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{:02}:{:02}", s / 60, s % 60);
}

base::Result<std::unique_ptr<TrainProgress>> TrainProgress::Open(const std::string& log_path,
                                                                 bool resumed,
                                                                 const training::Trainer& trainer) {
  if (resumed) {
    KV_TRY(CutLog(log_path, trainer.steps_done()));
  }
  std::FILE* log = std::fopen(log_path.c_str(), resumed ? "ae" : "we");
  if (!log) {
    return base::MakeError(base::ErrorCode::kIo, "cannot write the log '{}': {}", log_path,
                           std::generic_category().message(errno));
  }
  if (std::fseek(log, 0, SEEK_END) != 0 || std::ftell(log) <= 0) {
    std::fputs(fmt::format("{}\n", kTrainLogHeading).c_str(), log);
  }
  return std::unique_ptr<TrainProgress>(new TrainProgress(log, log_path, trainer));
}

TrainProgress::TrainProgress(std::FILE* log, std::string log_path, const training::Trainer& trainer)
    : log_(log),
      log_path_(std::move(log_path)),
      first_step_(trainer.steps_done()),
      steps_(trainer.options().steps),
      tokens_per_step_(static_cast<double>(trainer.options().batch * trainer.config().context())),
      terminal_(isatty(STDERR_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()) {}

TrainProgress::~TrainProgress() { std::fclose(log_); }

void TrainProgress::Show(const training::Progress& p) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate =
      static_cast<double>(p.step.step - first_step_) * tokens_per_step_ / std::max(seconds, 1e-9);
  if (p.evaluation) held_out_ = p.evaluation->nll;
  TrainLogLine logged{p.step.step, p.step.loss, p.step.gradient_norm, p.step.learning_rate, rate};
  if (p.evaluation) logged.held_out = p.evaluation->nll;
  const std::string line = logged.Text();
  if (std::fputs(line.c_str(), log_) == EOF || std::fflush(log_) != 0) {
    if (log_errno_ == 0) log_errno_ = errno;  // The run is worth more than its log: it goes on.
  }
  const std::string held_out =
      held_out_ > 0 ? fmt::format("  held-out {:.4f}", held_out_) : std::string();
  const double left =
      static_cast<double>(steps_ - p.step.step) * tokens_per_step_ / std::max(rate, 1e-9);
  const std::string numbers =
      fmt::format("{}/{}  loss {:.4f}{}  {:.0f} tokens/s  left {}", p.step.step, steps_,
                  p.step.loss, held_out, rate, ClockText(left));
  if (!terminal_) {
    if (p.evaluation) Tell(fmt::format("{}{}\n", numbers, p.is_best ? "  best so far" : ""));
    return;
  }
  if (p.step.step < steps_ && now - shown_ < kRedraw) return;
  shown_ = now;
  const std::size_t filled = kBarWidth * p.step.step / std::max<std::uint64_t>(1, steps_);
  Tell(fmt::format("\r[{}{}] {}\x1b[K", std::string(filled, '='),
                   std::string(kBarWidth - filled, ' '), numbers));
}

void TrainProgress::Note(const std::string& text) {
  Tell((terminal_ ? "\r\x1b[K" : "") + text + "\n");
}

base::Result<void> TrainProgress::Finish() {
  if (terminal_) std::fputc('\n', stderr);
  if (log_errno_ == 0) return base::Success();
  return base::MakeError(base::ErrorCode::kIo, "cannot write the log '{}': {}", log_path_,
                         std::generic_category().message(log_errno_));
}

}  // namespace kvasir::cli
