#include "eval/line_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

namespace kvasir::eval {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

PlotPanel PanelOf(const std::vector<PlotPoint>& points) {
  PlotSeries series = {.label = "a", .points = points, .line = points};
  return {.title = "t", .x_label = "x", .y_label = "y", .series = {series}};
}

TEST(LinePlotTest, DrawsEveryPointInsideItsPanel) {
  const std::vector<PlotPoint> points = {{32, 0.5}, {100, 3}, {4096, 700}};
  const PlotPanel panels[] = {PanelOf(points), PanelOf(points)};
  const std::string svg = DrawSvg("title", "small", panels);
  EXPECT_EQ(Count(svg, "<circle"), 6u);
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 960 464\""));
  const std::regex circle("cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::size_t index = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), circle), end; it != end; ++it, ++index) {
    const double x = std::stod((*it)[1]);
    const double y = std::stod((*it)[2]);
    EXPECT_GE(x, index < 3 ? 64 : 544);
    EXPECT_LE(x, index < 3 ? 464 : 944);
    EXPECT_GE(y, 84);
    EXPECT_LE(y, 388);
  }
  // 32 and 4096 are the ends of x; y reaches from 0.1 to 1000.
  EXPECT_THAT(svg, HasSubstr("cx=\"64.0\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"464.0\""));
  for (const char* tick : {">32<", ">4096<", ">0.1<", ">1000<"}) EXPECT_EQ(Count(svg, tick), 2u);
  EXPECT_THAT(svg, Not(HasSubstr(">16<")));
  EXPECT_THAT(svg, Not(HasSubstr(">10000<")));
}

TEST(LinePlotTest, LabelsStandBesideTheirDotsOnTheInnerSide) {
  const PlotPanel panel = PanelOf({{32, 1, "left & low"}, {4096, 10, "right"}, {64, 5}});
  const std::string svg = DrawSvg("title", "small", {&panel, 1});
  EXPECT_THAT(svg, HasSubstr("<text x=\"70.0\" y=\"383.0\" font-size=\"10\">left &amp; low<"));
  EXPECT_THAT(svg, HasSubstr("<text x=\"458.0\" y=\"79.0\" font-size=\"10\" "
                             "text-anchor=\"end\">right<"));
  EXPECT_EQ(Count(svg, "font-size=\"10\""), 2u);
}

TEST(LinePlotTest, LabelsDoNotLieOverEachOther) {
  const PlotPanel panel = PanelOf({{32, 1, "first"}, {32, 1, "second"}, {33, 1, "third"}});
  const std::string svg = DrawSvg("title", "small", {&panel, 1});
  EXPECT_THAT(svg, HasSubstr("<text x=\"70.0\" y=\"383.0\" font-size=\"10\">first<"));
  EXPECT_THAT(svg, HasSubstr("<text x=\"70.0\" y=\"394.0\" font-size=\"10\">second<"));
  EXPECT_THAT(svg, HasSubstr("y=\"372.0\" font-size=\"10\">third<"));
}

TEST(LinePlotTest, TextCannotBreakTheDocument) {
  PlotPanel panel = PanelOf({{1, 1}, {2, 2}});
  panel.series[0].label = "<script>alert('&')</script>";
  panel.x_label = "\"\x01\x1b[0m";
  const std::string svg = DrawSvg("a < b & c", "春风", {&panel, 1});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert('&amp;')&lt;/script&gt;"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("&quot;[0m"));
  EXPECT_THAT(svg, HasSubstr("春风"));
  EXPECT_EQ(Count(svg, "<svg"), 1u);
  EXPECT_EQ(Count(svg, "</svg>\n"), 1u);
}

TEST(LinePlotTest, WhatHasNoPlaceOnTheAxesIsLeftOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  const PlotPanel panel = PanelOf({{0, 1},
                                   {1, 0},
                                   {-1, 1},
                                   {1, infinity},
                                   {infinity, 1},
                                   {std::numeric_limits<double>::quiet_NaN(), 1},
                                   {8, 5}});
  const std::string svg = DrawSvg("", "", {&panel, 1});
  EXPECT_EQ(Count(svg, "<circle"), 1u);
  for (const char* bad : {"inf", "nan", "\"-"}) EXPECT_THAT(svg, Not(HasSubstr(bad)));
}

TEST(LinePlotTest, AnythingIsDrawn) {
  EXPECT_THAT(DrawSvg("", "", {}), HasSubstr("</svg>"));
  const PlotPanel empty;
  EXPECT_THAT(DrawSvg("", "", {&empty, 1}), HasSubstr("</svg>"));
  // A range of hundreds of decades has few grid lines.
  const PlotPanel wide = PanelOf({{1e-300, 1e-300}, {1e300, 1e300}});
  const std::string svg = DrawSvg("", "", {&wide, 1});
  EXPECT_LE(Count(svg, "stroke=\"#dddddd\""), 26u);
}

PlotPanel Linear(const std::vector<PlotPoint>& points) {
  PlotPanel panel = PanelOf(points);
  panel.x_scale = panel.y_scale = PlotScale::kLinear;
  return panel;
}

TEST(LinePlotTest, LinearAxesAreCutAtRoundNumbers) {
  const PlotPanel panel = Linear({{0, 4.1}, {1000, 6.9}, {500, -0.0}});
  const std::string svg = DrawSvg("", "", {&panel, 1});
  EXPECT_EQ(Count(svg, "<circle"), 3u);
  EXPECT_THAT(svg, HasSubstr("cx=\"64.0\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"264.0\" cy=\"388.0\""));
  for (const char* tick : {">200<", ">800<", ">6<", ">2<"}) EXPECT_EQ(Count(svg, tick), 1u);
  EXPECT_EQ(Count(svg, ">0<"), 2u);
  const PlotPanel narrow = Linear({{1, 4.126}, {3, 4.1265}});
  const std::string close = DrawSvg("", "", {&narrow, 1});
  EXPECT_EQ(Count(close, ">4.1261<"), 1u);
  EXPECT_THAT(close, Not(HasSubstr(">0<")));
}

TEST(LinePlotTest, AnythingIsDrawnOnLinearAxes) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& points :
       std::vector<std::vector<PlotPoint>>{{},
                                           {{0, 0}},
                                           {{7, 7}},
                                           {{-1e300, 1e300}, {1e300, -1e300}},
                                           {{1e99, -1e99}, {-1e99, 1e99}},
                                           {{1e15, 1}, {1e15 + 0.125, 1}},
                                           {{infinity, 1}, {1, -infinity}, {NAN, 1}}}) {
    const PlotPanel panel = Linear(points);
    const std::string svg = DrawSvg("", "", {&panel, 1});
    for (const char* bad : {"inf", "nan"}) EXPECT_THAT(svg, Not(HasSubstr(bad)));
    EXPECT_LE(Count(svg, "stroke=\"#dddddd\""), 26u);
    EXPECT_GE(Count(svg, "stroke=\"#dddddd\""), 4u);
  }
}

TEST(LinePlotTest, TheLegendNamesWhatIsDrawn) {
  PlotPanel panel = PanelOf({{1, 1}, {2, 2}});
  panel.series[0].label = "drawn";
  panel.series.push_back({.label = "nothing", .color = 1, .points = {}, .line = {}});
  const std::string svg = DrawSvg("", "", {&panel, 1});
  EXPECT_EQ(Count(svg, ">drawn<"), 1u);
  EXPECT_EQ(Count(svg, ">nothing<"), 0u);
}

TEST(LinePlotTest, DashesAndColoursTellSeriesApart) {
  PlotPanel panel = PanelOf({{1, 1}, {2, 2}});
  panel.series.push_back(panel.series[0]);
  panel.series[1].dashed = true;
  panel.series[1].color = 5;
  const std::string svg = DrawSvg("", "", {&panel, 1});
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 2u);  // The line and its legend.
  EXPECT_THAT(svg, HasSubstr("#0072b2"));
  EXPECT_THAT(svg, HasSubstr("#d55e00"));
}

}  // namespace
}  // namespace kvasir::eval
