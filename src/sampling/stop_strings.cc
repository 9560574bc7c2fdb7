#include "sampling/stop_strings.h"

#include <algorithm>
#include <utility>

namespace kvasir::sampling {

base::Result<StopMatcher> StopMatcher::Create(std::vector<std::string> stops) {
  std::vector<Stop> compiled;
  compiled.reserve(stops.size());
  for (std::string& text : stops) {
    if (text.empty()) {
      return base::MakeError(base::ErrorCode::kUsage,
                             "stop string {} is empty: a stop string has at least one character",
                             compiled.size() + 1);
    }
    Stop stop{std::move(text), {}, 0};
    stop.border.assign(stop.text.size(), 0);
    for (std::size_t i = 1; i < stop.text.size(); ++i) {
      std::size_t k = stop.border[i - 1];
      while (k > 0 && stop.text[i] != stop.text[k]) k = stop.border[k - 1];
      stop.border[i] = stop.text[i] == stop.text[k] ? k + 1 : 0;
    }
    compiled.push_back(std::move(stop));
  }
  return StopMatcher(std::move(compiled));
}

std::size_t StopMatcher::Advance(Stop& stop, char byte) {
  std::size_t k = stop.length;
  while (k > 0 && stop.text[k] != byte) k = stop.border[k - 1];
  stop.length = stop.text[k] == byte ? k + 1 : 0;
  return stop.length;
}

std::string StopMatcher::Feed(std::string_view piece) {
  if (stopped_) return {};
  for (char byte : piece) {
    held_.push_back(byte);
    const Stop* hit = nullptr;
    for (Stop& stop : stops_) {
      // A complete stop ends the matching, so Advance never sees length == text.size().
      if (Advance(stop, byte) < stop.text.size()) continue;
      if (hit == nullptr || stop.text.size() > hit->text.size()) hit = &stop;
    }
    if (hit != nullptr) {
      stopped_ = true;
      matched_ = hit->text;
      held_.resize(held_.size() - matched_.size());
      return std::exchange(held_, {});
    }
  }
  std::size_t longest = 0;
  for (const Stop& stop : stops_) longest = std::max(longest, stop.length);
  std::string certain = held_.substr(0, held_.size() - longest);
  held_.erase(0, held_.size() - longest);
  return certain;
}

std::string StopMatcher::Finish() { return std::exchange(held_, {}); }

}  // namespace kvasir::sampling
