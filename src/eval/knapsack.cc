#include "eval/knapsack.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace kvasir::eval {
namespace {

constexpr std::size_t kMaxPoints = 4096;

// A way to choose for the items so far, and the point before the last item that it came from.
struct Point {
  std::uint64_t bytes;
  double loss;
  std::size_t before;
  std::size_t choice;
};
using Front = std::vector<Point>;

// By bytes ascending, losses strictly descending.
void KeepPareto(Front& points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.bytes, a.loss, a.before, a.choice) <
           std::tie(b.bytes, b.loss, b.before, b.choice);
  });
  Front front;
  for (const Point& point : points) {
    if (front.empty() || point.loss < front.back().loss) front.push_back(point);
  }
  points = std::move(front);
}

// Of the points in each of kMaxPoints equal parts of the budget the last, which has the least loss;
// and the very first, so that what fits goes on fitting.
void Thin(Front& front, std::uint64_t budget) {
  if (front.size() <= kMaxPoints) return;
  const std::uint64_t part = budget / kMaxPoints + 1;
  Front thinned = {front.front()};
  for (std::size_t i = 1; i < front.size(); ++i) {
    if (i + 1 == front.size() || front[i].bytes / part != front[i + 1].bytes / part) {
      thinned.push_back(front[i]);
    }
  }
  front = std::move(thinned);
}

}  // namespace

std::optional<std::vector<std::size_t>> ChooseWithin(
    std::span<const std::vector<KnapsackChoice>> items, std::uint64_t budget) {
  std::vector<Front> fronts = {{{.bytes = 0, .loss = 0, .before = 0, .choice = 0}}};
  for (const std::vector<KnapsackChoice>& choices : items) {
    KV_CHECK(!choices.empty());
    Front next;
    const Front& last = fronts.back();
    for (std::size_t i = 0; i < last.size(); ++i) {
      for (std::size_t c = 0; c < choices.size(); ++c) {
        if (choices[c].bytes > budget - last[i].bytes) continue;
        next.push_back({last[i].bytes + choices[c].bytes, last[i].loss + choices[c].loss, i, c});
      }
    }
    if (next.empty()) return std::nullopt;
    KeepPareto(next);
    Thin(next, budget);
    fronts.push_back(std::move(next));
  }
  std::vector<std::size_t> chosen(items.size());
  std::size_t at = fronts.back().size() - 1;  // The least loss.
  for (std::size_t item = items.size(); item > 0; --item) {
    const Point& point = fronts[item][at];
    chosen[item - 1] = point.choice;
    at = point.before;
  }
  return chosen;
}

}  // namespace kvasir::eval
