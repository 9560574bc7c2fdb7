// A seed for whoever names none.
#ifndef KVASIR_BASE_RANDOM_SEED_H_
#define KVASIR_BASE_RANDOM_SEED_H_

#include <cstdint>
#include <random>

namespace kvasir::base {

// 64 bits from the system.
inline std::uint64_t RandomSeed() {
  std::random_device device;
  const std::uint64_t high = device();
  return high << 32 | device();
}

}  // namespace kvasir::base

#endif  // KVASIR_BASE_RANDOM_SEED_H_
