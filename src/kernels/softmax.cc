#include "kernels/softmax.h"

#include <algorithm>

#include "kernels/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

float MaxValueImpl(const float* x, std::size_t n) {
  V16 max = Set16(x[0]);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) max = Max16(max, Load16(x + i));
  float result = MaxLane16(max);
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

bool AllFiniteImpl(const float* x, std::size_t n) {
  // x · 0 is 0 for finite x and NaN otherwise; a sum keeps any NaN.
  V16 sum = Zero16();
  const V16 zero = Zero16();
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) sum = Fma16(Load16(x + i), zero, sum);
  float total = Fold16(sum);
  for (; i < n; ++i) total += x[i] * 0.0f;
  return total == 0.0f;
}

void WeightsImpl(const float* x, std::size_t n, float max, float divisor, float* out) {
  const V16 max16 = Set16(max);
  const V16 divisor16 = Set16(divisor);
  std::size_t i = 0;
  if (divisor == 1.0f) {  // x / 1 is x: the same bits without the slowest instruction.
    for (; i + 16 <= n; i += 16) Store16(Exp16(Sub16(Load16(x + i), max16)), out + i);
  }
  for (; i + 16 <= n; i += 16)
    Store16(Exp16(Div16(Sub16(Load16(x + i), max16), divisor16)), out + i);
  if (i < n) {
    const V16 tail = LoadFirst16(x + i, n - i);
    StoreFirst16(Exp16(Div16(Sub16(tail, max16), divisor16)), out + i, n - i);
  }
}

// Σ exp(x − max) in 16 lanes; writes the exponentials to out unless it is null.
float ExpSum(const float* x, std::size_t n, float max, float* out) {
  const V16 max16 = Set16(max);
  V16 sum = Zero16();
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V16 e = Exp16(Sub16(Load16(x + i), max16));
    sum = Add16(sum, e);
    if (out) Store16(e, out + i);
  }
  if (i < n) {
    const V16 e = FirstLanes16(Exp16(Sub16(LoadFirst16(x + i, n - i), max16)), n - i, Zero16());
    sum = Add16(sum, e);
    if (out) StoreFirst16(e, out + i, n - i);
  }
  return Fold16(sum);
}

double CrossEntropyGradImpl(float* logits, std::size_t n, std::uint32_t target, float weight) {
  const float max = MaxValueImpl(logits, n);
  const float target_logit = logits[target];
  const float sum = ExpSum(logits, n, max, logits);
  const float factor = weight / sum;
  const V16 factor16 = Set16(factor);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) Store16(Mul16(Load16(logits + i), factor16), logits + i);
  for (; i < n; ++i) logits[i] = logits[i] * factor;
  logits[target] = logits[target] - weight;
  return LogF64(static_cast<double>(sum)) - (static_cast<double>(target_logit) - max);
}

double CrossEntropyImpl(const float* logits, std::size_t n, std::uint32_t target) {
  const float max = MaxValueImpl(logits, n);
  const float sum = ExpSum(logits, n, max, nullptr);
  return LogF64(static_cast<double>(sum)) - (static_cast<double>(logits[target]) - max);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(MaxValueImpl);
HWY_EXPORT(AllFiniteImpl);
HWY_EXPORT(WeightsImpl);
HWY_EXPORT(CrossEntropyGradImpl);
HWY_EXPORT(CrossEntropyImpl);

float MaxValue(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(MaxValueImpl)(x, n); }

bool AllFinite(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(AllFiniteImpl)(x, n); }

void SoftmaxWeights(const float* x, std::size_t n, float max, float divisor, float* out) {
  HWY_DYNAMIC_DISPATCH(WeightsImpl)(x, n, max, divisor, out);
}

double CrossEntropyGrad(float* logits, std::size_t n, std::uint32_t target, float weight) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyGradImpl)(logits, n, target, weight);
}

double CrossEntropy(const float* logits, std::size_t n, std::uint32_t target) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyImpl)(logits, n, target);
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
