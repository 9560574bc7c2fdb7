#include "kernels/targets.h"

#include "hwy/highway.h"
#include "hwy/targets.h"

namespace kvasir::kernels {
namespace {

std::int64_t Supported() { return hwy::SupportedTargets() & HWY_TARGETS; }

void Choose(std::int64_t mask) {
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<Target> AvailableTargets() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<Target> targets;
  // A lower bit is a better target (Highway's numbering).
  for (int i = 0; i < 63; ++i) {
    const std::int64_t bit = std::int64_t{1} << i;
    if (Supported() & bit) targets.push_back({bit, hwy::TargetName(bit)});
  }
  return targets;
}

base::Result<void> CheckProcessor() {
  if (Supported() == 0) {
    return base::MakeError(base::ErrorCode::kNumeric,
                           "this processor has no fused multiply-add (x86-64 needs AVX2 and FMA), "
                           "which the numerics contract requires");
  }
  return base::Success();
}

void ForceTarget(const Target& target) { Choose(target.bit); }

void UseBestTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::string CurrentTargetName() {
  const std::int64_t mask = Supported();
  return mask == 0 ? "none" : hwy::TargetName(mask & -mask);
}

}  // namespace kvasir::kernels
