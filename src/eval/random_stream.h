// Random numbers one after the other, all fixed by a seed.
#ifndef KVASIR_EVAL_RANDOM_STREAM_H_
#define KVASIR_EVAL_RANDOM_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/philox.h"

namespace kvasir::eval {

// Philox (base/philox.h) with a running counter. Two streams of one seed and different purposes
// share no number. Copyable; single-threaded.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed, std::uint32_t purpose = 0)
      : seed_(seed), purpose_(purpose) {}

  std::uint64_t Next() {
    const auto words =
        base::Philox4x32(seed_, {static_cast<std::uint32_t>(count_),
                                 static_cast<std::uint32_t>(count_ >> 32), purpose_, 0x6576616Cu});
    ++count_;
    return std::uint64_t{words[1]} << 32 | words[0];
  }
  // 0 … bound − 1; bound >= 1. The bias of a plain remainder (below 2^−32 for bounds below 2^32)
  // matters to no caller here.
  std::uint64_t Below(std::uint64_t bound) {
    KV_CHECK(bound > 0);
    return Next() % bound;
  }
  // low … high, both included.
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
    KV_CHECK(low <= high);
    return low + Below(high - low + 1);
  }
  bool Chance(std::uint64_t numerator, std::uint64_t denominator) {
    return Below(denominator) < numerator;
  }
  // In [−1, 1).
  float Symmetric() { return static_cast<float>(static_cast<std::int64_t>(Next())) * 0x1p-63f; }

  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
  std::uint32_t purpose_;
};

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_RANDOM_STREAM_H_
