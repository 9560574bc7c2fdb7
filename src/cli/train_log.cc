#include "cli/train_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "eval/line_plot.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kFields = 6;
constexpr std::size_t kMostPoints = 400;

template <typename T>
bool Parse(std::string_view text, T& value) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && rest == text.data() + text.size();
}

std::optional<TrainLogLine> ParseLine(std::string_view text) {
  std::array<std::string_view, kFields> fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::size_t end = text.find('\t');
    if ((end == std::string_view::npos) != (i == kFields - 1)) return std::nullopt;
    fields[i] = text.substr(0, end);
    text.remove_prefix(std::min(fields[i].size() + 1, text.size()));
  }
  TrainLogLine line;
  if (!Parse(fields[0], line.step) || !Parse(fields[1], line.loss) ||
      !Parse(fields[2], line.gradient_norm) || !Parse(fields[3], line.learning_rate) ||
      !Parse(fields[4], line.tokens_per_s)) {
    return std::nullopt;
  }
  if (fields[5].empty()) return line;
  double held_out = 0;
  if (!Parse(fields[5], held_out)) return std::nullopt;
  line.held_out = held_out;
  return line;
}

// Means of stretches of equal length, at their last step.
std::vector<eval::PlotPoint> Thinned(std::span<const TrainLogLine> lines,
                                     double TrainLogLine::*value) {
  const std::size_t stretch = (lines.size() + kMostPoints - 1) / kMostPoints;
  std::vector<eval::PlotPoint> points;
  for (std::size_t begin = 0; begin < lines.size(); begin += stretch) {
    const std::size_t end = std::min(begin + stretch, lines.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += lines[i].*value;
    points.push_back(
        {static_cast<double>(lines[end - 1].step), sum / static_cast<double>(end - begin)});
  }
  return points;
}

}  // namespace

std::string TrainLogLine::Text() const {
  return fmt::format("{}\t{:.6f}\t{:.4f}\t{:.6g}\t{:.0f}\t{}\n", step, loss, gradient_norm,
                     learning_rate, tokens_per_s, held_out ? fmt::format("{:.6f}", *held_out) : "");
}

base::Result<std::vector<TrainLogLine>> ReadTrainLog(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  std::string_view rest = file->text();
  std::vector<TrainLogLine> lines;
  std::size_t number = 0;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    ++number;
    if (number == 1 && text == kTrainLogHeading) continue;
    const std::optional<TrainLogLine> line = number == 1 ? std::nullopt : ParseLine(text);
    if (!line) {
      return base::MakeError(base::ErrorCode::kBadData, "'{}' line {} is none of a training log",
                             path, number);
    }
    lines.push_back(*line);
  }
  return lines;
}

std::string DrawTrainLog(const std::string& title, const std::vector<TrainLogLine>& lines) {
  std::vector<eval::PlotPoint> held_out;
  for (const TrainLogLine& line : lines) {
    if (line.held_out) held_out.push_back({static_cast<double>(line.step), *line.held_out});
  }
  eval::PlotPanel loss{.title = "Loss",
                       .x_label = "step",
                       .y_label = "nats per token",
                       .series = {},
                       .x_scale = eval::PlotScale::kLinear,
                       .y_scale = eval::PlotScale::kLinear};
  eval::PlotPanel rate = loss;
  rate.title = rate.y_label = "Learning rate";
  loss.series.push_back({.label = "training", .line = Thinned(lines, &TrainLogLine::loss)});
  loss.series.push_back({.label = "held out", .color = 1, .points = held_out, .line = held_out});
  rate.series.push_back(
      {.label = "learning rate", .color = 2, .line = Thinned(lines, &TrainLogLine::learning_rate)});
  const std::size_t stretch = (lines.size() + kMostPoints - 1) / kMostPoints;
  const std::string small = stretch > 1 ? fmt::format("Training loss: means of {} steps", stretch)
                                        : std::string("Training loss: of each step");
  const eval::PlotPanel panels[] = {std::move(loss), std::move(rate)};
  return eval::DrawSvg(title, small, panels);
}

}  // namespace kvasir::cli
