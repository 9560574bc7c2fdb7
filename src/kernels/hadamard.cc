#include "kernels/hadamard.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/hadamard.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// The first step's pairs lie within a vector; narrow ones are turned number by number.
void RotateRun(float* x, std::size_t n, float factor) {
  const DF d;
  for (std::size_t step = 1; step < n; step *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * step) {
      float* low = x + begin;
      float* high = low + step;
      if (step < kWidth) {
        for (std::size_t i = 0; i < step; ++i) {
          const float sum = low[i] + high[i];
          high[i] = low[i] - high[i];
          low[i] = sum;
        }
        continue;
      }
      for (std::size_t i = 0; i < step; i += kWidth) {
        const VF a = hn::LoadU(d, low + i);
        const VF b = hn::LoadU(d, high + i);
        hn::StoreU(hn::Add(a, b), d, low + i);
        hn::StoreU(hn::Sub(a, b), d, high + i);
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

void HadamardImpl(float* x, std::size_t heads, std::size_t head_dim) {
  const std::size_t n = HadamardSize(head_dim);
  if (n == 1) return;
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(n)));
  for (std::size_t i = 0; i < heads * head_dim; i += n) RotateRun(x + i, n, factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(HadamardImpl);

void HadamardRotate(float* x, std::size_t heads, std::size_t head_dim) {
  HWY_DYNAMIC_DISPATCH(HadamardImpl)(x, heads, head_dim);
}

void ReferenceHadamardRotate(float* x, std::size_t heads, std::size_t head_dim) {
  const std::size_t n = HadamardSize(head_dim);
  if (n == 1) return;
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(n)));
  for (std::size_t begin = 0; begin < heads * head_dim; begin += n) {
    float* run = x + begin;
    for (std::size_t step = 1; step < n; step *= 2) {
      for (std::size_t i = 0; i < n; ++i) {
        if ((i & step) != 0) continue;
        const float a = run[i];
        const float b = run[i + step];
        run[i] = a + b;
        run[i + step] = a - b;
      }
    }
    for (std::size_t i = 0; i < n; ++i) run[i] *= factor;
  }
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
