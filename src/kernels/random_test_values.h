// For tests of kernels: numbers that a seed and a stream fix, and equality to the bit.
#ifndef KVASIR_KERNELS_RANDOM_TEST_VALUES_H_
#define KVASIR_KERNELS_RANDOM_TEST_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/philox.h"

namespace kvasir::kernels {

// n numbers in [−scale, scale).
inline std::vector<float> RandomValues(std::uint64_t seed, std::size_t n, std::uint32_t stream,
                                       float scale = 1.0f) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = base::Philox4x32(seed, {static_cast<std::uint32_t>(i), stream, 0, 0});
    values[i] = scale * static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
  }
  return values;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_RANDOM_TEST_VALUES_H_
