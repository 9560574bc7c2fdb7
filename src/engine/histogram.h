// Histogram: how often durations fell into fixed ranges.
#ifndef KVASIR_ENGINE_HISTOGRAM_H_
#define KVASIR_ENGINE_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::engine {

// A value. Durations are microseconds.
class Histogram {
 public:
  // Upper bounds, inclusive, from 100 µs to 100 s; what is longer counts in `count` only.
  static constexpr std::array<std::uint64_t, 19> kBounds = {
      100,       250,        500,        1'000,      2'500,      5'000,     10'000,
      25'000,    50'000,     100'000,    250'000,    500'000,    1'000'000, 2'500'000,
      5'000'000, 10'000'000, 25'000'000, 50'000'000, 100'000'000};

  void Add(std::uint64_t us) {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), us);
    if (bound != kBounds.end()) ++buckets_[static_cast<std::size_t>(bound - kBounds.begin())];
    ++count_;
    sum_us_ += us;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t sum_us() const { return sum_us_; }
  // How many were at most kBounds[bound].
  std::uint64_t CountUpTo(std::size_t bound) const {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i <= bound; ++i) total += buckets_[i];
    return total;
  }

 private:
  std::array<std::uint64_t, kBounds.size()> buckets_ = {};
  std::uint64_t count_ = 0;
  std::uint64_t sum_us_ = 0;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_HISTOGRAM_H_
