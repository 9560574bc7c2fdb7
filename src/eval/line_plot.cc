#include "eval/line_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace kvasir::eval {
namespace {

// Of Okabe and Ito (2008).
constexpr const char* kPalette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

// Pixels.
constexpr double kPanelWidth = 480;
constexpr double kHeight = 440;  // Without the legend.
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 84;
constexpr double kBottom = 52;
constexpr double kLegendLine = 16;
constexpr std::size_t kLegendColumns = 2;

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n') {
      out += c;
    }
  }
  return out;
}

// From one round number to another, of exponents where it is logarithmic.
class Axis {
 public:
  Axis(PlotScale scale, double base, double pixels_low, double pixels_high)
      : scale_(scale), base_(base), pixels_low_(pixels_low), pixels_high_(pixels_high) {}

  bool Shows(double value) const {
    if (scale_ == PlotScale::kLinear) return std::abs(value) < kMostLinear;  // No NaN either.
    return std::isfinite(value) && value > 0;
  }
  void Include(double value) {
    const double at = Place(value);
    least_ = seen_ ? std::min(least_, at) : at;
    most_ = seen_ ? std::max(most_, at) : at;
    seen_ = true;
  }
  // After every Include: where the axis begins and ends, at most about ten grid lines apart.
  void Fix() {
    if (scale_ == PlotScale::kLinear) {
      step_ = RoundStep(std::max(most_ - least_, 1e-9 * std::max(std::abs(most_), 1e-9)) / 6);
    }
    // A hair's breadth of rounding must not add an empty step.
    low_ = std::floor(least_ / step_ + 1e-9) * step_;
    high_ = std::max(std::ceil(most_ / step_ - 1e-9) * step_, low_ + step_);
    if (scale_ == PlotScale::kLog) step_ = std::max(1.0, std::ceil((high_ - low_) / 10));
  }
  // Where on the axis, from 0 at its low end to 1.
  double Share(double value) const { return (Place(value) - low_) / (high_ - low_); }
  double Pixel(double value) const {
    return pixels_low_ + Share(value) * (pixels_high_ - pixels_low_);
  }
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    for (int i = 0; low_ + i * step_ <= high_ + 1e-9 * step_; ++i) {
      const double at = low_ + i * step_;
      // A multiple of the step next to 0 is 0, not what rounding leaves of it.
      const double linear = std::abs(at) < 1e-6 * step_ ? 0.0 : at;
      ticks.push_back(scale_ == PlotScale::kLinear ? linear : std::pow(base_, at));
    }
    return ticks;
  }

 private:
  double Place(double value) const {
    return scale_ == PlotScale::kLinear ? value : std::log(value) / std::log(base_);
  }
  // The least of 1, 2 or 5 times a power of 10 that is not below.
  static double RoundStep(double least) {
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double times : {1.0, 2.0, 5.0}) {
      if (times * power >= least) return times * power;
    }
    return 10 * power;
  }

  static constexpr double kMostLinear = 1e100;  // Far from where differences overflow.
  const PlotScale scale_;
  const double base_;
  const double pixels_low_, pixels_high_;
  bool seen_ = false;
  double least_ = 0, most_ = 1;  // Exponents, or the values themselves.
  double low_ = 0, high_ = 1, step_ = 1;
};

bool Drawable(const PlotPoint& point, const Axis& x, const Axis& y) {
  return x.Shows(point.x) && y.Shows(point.y);
}

std::string Text(double x, double y, std::string_view attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                     attributes.empty() ? "" : " ", attributes, Escape(text));
}

void DrawSeries(const PlotSeries& series, const Axis& x, const Axis& y, std::string& out) {
  const char* color = kPalette[series.color % std::size(kPalette)];
  std::string path;
  for (const PlotPoint& point : series.line) {
    if (!Drawable(point, x, y)) continue;
    path +=
        fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.Pixel(point.x), y.Pixel(point.y));
  }
  if (!path.empty()) {
    out +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
                    path, color, series.dashed ? " stroke-dasharray=\"6 4\"" : "");
  }
  for (const PlotPoint& point : series.points) {
    if (!Drawable(point, x, y)) continue;
    out +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" stroke=\"{}\"/>\n",
                    x.Pixel(point.x), y.Pixel(point.y), series.dashed ? "#ffffff" : color, color);
  }
}

// Labels stand beside their dots; in the right half of the axes left of them, so that they stay
// inside. Where one would lie over another it goes a line up or down, then two.
void DrawLabels(const PlotPanel& panel, const Axis& x, const Axis& y, std::string& out) {
  constexpr double kLine = 11;
  constexpr double kLetter = 5.4;  // About, at this size.
  struct Box {
    double left, right, base;
  };
  std::vector<Box> boxes;
  for (const PlotSeries& series : panel.series) {
    for (const PlotPoint& point : series.points) {
      if (point.label.empty() || !Drawable(point, x, y)) continue;
      const bool before = x.Share(point.x) > 0.5;
      const double at = x.Pixel(point.x) + (before ? -6 : 6);
      const double width = kLetter * static_cast<double>(point.label.size());
      Box box = {before ? at - width : at, before ? at : at + width, 0};
      for (const double lines : {0, 1, -1, 2, -2, 3, -3}) {
        box.base = y.Pixel(point.y) - 5 + lines * kLine;
        const bool taken = std::any_of(boxes.begin(), boxes.end(), [&](const Box& other) {
          return box.left < other.right && other.left < box.right &&
                 std::abs(box.base - other.base) < kLine - 0.5;
        });
        if (!taken) break;
      }
      boxes.push_back(box);
      out +=
          Text(at, box.base, before ? "font-size=\"10\" text-anchor=\"end\"" : "font-size=\"10\"",
               point.label);
    }
  }
}

// Series that have something to show, below the axes.
std::vector<const PlotSeries*> Legend(const PlotPanel& panel) {
  std::vector<const PlotSeries*> shown;
  for (const PlotSeries& series : panel.series) {
    if (!series.points.empty() || !series.line.empty()) shown.push_back(&series);
  }
  return shown;
}

double LegendHeight(const PlotPanel& panel) {
  const std::size_t lines = (Legend(panel).size() + kLegendColumns - 1) / kLegendColumns;
  return kLegendLine * static_cast<double>(lines);
}

void DrawLegend(const PlotPanel& panel, double left, double right, std::string& out) {
  const std::vector<const PlotSeries*> shown = Legend(panel);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double column = (right - left) / static_cast<double>(kLegendColumns);
    const double x = left + static_cast<double>(i % kLegendColumns) * column;
    const double y = kHeight + 8 + kLegendLine * static_cast<double>(i / kLegendColumns);
    out += fmt::format("<path d=\"M{:.1f} {:.1f}h24\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", x,
                       y - 4, kPalette[shown[i]->color % std::size(kPalette)],
                       shown[i]->dashed ? " stroke-dasharray=\"6 4\"" : "");
    out += Text(x + 30, y, "", shown[i]->label);
  }
}

void DrawPanel(const PlotPanel& panel, double left_edge, std::string& out) {
  const double left = left_edge + kLeft;
  const double right = left_edge + kPanelWidth - kRight;
  const double bottom = kHeight - kBottom;
  Axis x(panel.x_scale, 2, left, right);
  Axis y(panel.y_scale, 10, bottom, kTop);
  for (const PlotSeries& series : panel.series) {
    for (const std::vector<PlotPoint>* points : {&series.points, &series.line}) {
      for (const PlotPoint& point : *points) {
        if (!Drawable(point, x, y)) continue;
        x.Include(point.x);
        y.Include(point.y);
      }
    }
  }
  x.Fix();
  y.Fix();
  for (const double tick : x.Ticks()) {
    out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#dddddd\"/>\n", x.Pixel(tick),
                       kTop, bottom);
    out += Text(x.Pixel(tick), bottom + 16, "text-anchor=\"middle\"", fmt::format("{:g}", tick));
  }
  for (const double tick : y.Ticks()) {
    out += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#dddddd\"/>\n", left,
                       y.Pixel(tick), right);
    out += Text(left - 6, y.Pixel(tick) + 4, "text-anchor=\"end\"", fmt::format("{:g}", tick));
  }
  for (const PlotSeries& series : panel.series) DrawSeries(series, x, y, out);
  DrawLabels(panel, x, y, out);
  DrawLegend(panel, left, right, out);
  out += Text(left, kTop - 12, "font-weight=\"bold\"", panel.title);
  out += Text((left + right) / 2, kHeight - 14, "text-anchor=\"middle\"", panel.x_label);
  const double middle = (kTop + bottom) / 2;
  out += Text(left_edge + 16, middle,
              fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} {:.1f})\"",
                          left_edge + 16, middle),
              panel.y_label);
}

}  // namespace

std::string DrawSvg(const std::string& title, const std::string& small_print,
                    std::span<const PlotPanel> panels) {
  const double width = kPanelWidth * static_cast<double>(std::max<std::size_t>(panels.size(), 1));
  double height = kHeight;
  for (const PlotPanel& panel : panels) {
    height = std::max(height, kHeight + LegendHeight(panel) + 8);
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#ffffff\"/>\n",
      width, height);
  out += Text(16, 24, "font-size=\"15\" font-weight=\"bold\"", title);
  out += Text(16, 44, "fill=\"#555555\"", small_print);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    DrawPanel(panels[i], kPanelWidth * static_cast<double>(i), out);
  }
  return out + "</svg>\n";
}

}  // namespace kvasir::eval
