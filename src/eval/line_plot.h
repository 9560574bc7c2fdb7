// Pictures of how something grows: lines on logarithmic or linear axes, as an SVG document.
#ifndef KVASIR_EVAL_LINE_PLOT_H_
#define KVASIR_EVAL_LINE_PLOT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kvasir::eval {

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::string label = {};  // Written beside the dot.
};

// Points that are not finite, or not above 0 on a logarithmic axis, are left out: they have no
// place there.
struct PlotSeries {
  std::string label;
  std::size_t color = 0;  // Index into a palette of four that the colour-blind can tell apart.
  bool dashed = false;
  std::vector<PlotPoint> points = {};  // Drawn as dots.
  std::vector<PlotPoint> line = {};    // Drawn as a line, in this order.
};

// Where the grid lines of an axis are.
enum class PlotScale {
  kLog,     // At powers of 2 in x and of 10 in y.
  kLinear,  // At multiples of 1, 2 or 5 times a power of 10; the axis need not begin at 0.
};

// One set of axes.
struct PlotPanel {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  PlotScale x_scale = PlotScale::kLog;
  PlotScale y_scale = PlotScale::kLog;
};

// A whole SVG 1.1 document: panels side by side below a title and a line of small print; no
// scripts, no references, fonts of the viewer. Any text is allowed; characters that XML forbids are
// left out. Thread-safe.
std::string DrawSvg(const std::string& title, const std::string& small_print,
                    std::span<const PlotPanel> panels);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_LINE_PLOT_H_
