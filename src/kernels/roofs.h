// What this processor can do at most: loops that do nothing but read, or nothing but multiply and
// add. For benchmarks to compare with; no result of the program depends on them.
#ifndef KVASIR_KERNELS_ROOFS_H_
#define KVASIR_KERNELS_ROOFS_H_

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// Sum modulo 2^32 of count 32-bit words, read in ascending order at full vector width by eight
// independent sums. words is 64-byte aligned for full speed. Thread-safe.
std::uint32_t SumWords(const std::uint32_t* words, std::size_t count);

struct FmaWork {
  double flops;  // Done: two for each lane of each fused multiply-add.
  float result;  // Of them all, so that none can be left out.
};

// `rounds` steps of twelve independent chains x = x · 0.5 + 1 in f32: as many as hide the latency
// of a fused multiply-add on every processor we know. Thread-safe.
FmaWork RunFmaChains(std::size_t rounds);

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_ROOFS_H_
