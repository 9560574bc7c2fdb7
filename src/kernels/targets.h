// Which instruction sets the kernels may use, and forcing one for tests and `verify`.
#ifndef KVASIR_KERNELS_TARGETS_H_
#define KVASIR_KERNELS_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace kvasir::kernels {

struct Target {
  std::int64_t bit;  // Highway's number for it.
  std::string name;  // "AVX2", "AVX3" (AVX-512), "NEON", …
};

// Targets compiled in that this processor has, best first; empty on a processor without fused
// multiply-add.
std::vector<Target> AvailableTargets();

// kNumeric with a clear refusal on a processor that lacks what R5 needs. Call before any kernel.
base::Result<void> CheckProcessor();

// Makes all kernels of this process use this target until changed. Not while kernels run.
void ForceTarget(const Target& target);
void UseBestTarget();

// Name of the target in use.
std::string CurrentTargetName();

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_TARGETS_H_
