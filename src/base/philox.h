// Philox4x32-10, the counter-based random generator of contract rules R7 and R8.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// A draw is a pure function of (key, counter): no state to save, no order to keep.
#ifndef KVASIR_BASE_PHILOX_H_
#define KVASIR_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace kvasir::base {

using PhiloxCounter = std::array<std::uint32_t, 4>;

// Four random words for this key and counter.
inline std::array<std::uint32_t, 4> Philox4x32(std::uint64_t key, PhiloxCounter counter) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// A double in [0, 1) with 53 random bits, from two words.
inline double UniformDouble(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_PHILOX_H_
