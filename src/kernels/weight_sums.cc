#include "kernels/weight_sums.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weight_sums.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// Sixteen f64 lanes: twice the vectors of V16, each as wide in bytes.
using DD = hn::CappedTag<double, kWidth / 2>;
using DHalf = hn::Half<DF>;
struct D16 {
  hn::Vec<DD> part[2 * kParts];
};

HWY_INLINE D16 ZeroD16() {
  D16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < 2 * kParts; ++i) r.part[i] = hn::Zero(DD());
  return r;
}

// sum + the lanes of x, widened exactly.
HWY_INLINE D16 AddWide(const D16& sum, const V16& x) {
  D16 r;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto low = hn::PromoteTo(DD(), hn::LowerHalf(DHalf(), x.part[i]));
    const auto high = hn::PromoteTo(DD(), hn::UpperHalf(DHalf(), x.part[i]));
    r.part[2 * i] = hn::Add(sum.part[2 * i], low);
    r.part[2 * i + 1] = hn::Add(sum.part[2 * i + 1], high);
  }
  return r;
}

HWY_INLINE double FoldD16(const D16& v) {
  HWY_ALIGN double lane[8];
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    hn::Store(hn::Add(v.part[i], v.part[i + kParts]), DD(), lane + i * (kWidth / 2));  // 8
  }
  const double a = lane[0] + lane[4];
  const double b = lane[1] + lane[5];
  const double c = lane[2] + lane[6];
  const double d = lane[3] + lane[7];
  return (a + c) + (b + d);
}

double ExpSumF64Impl(const float* x, std::size_t n, float max) {
  const V16 max16 = Set16(max);
  D16 sum = ZeroD16();
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) sum = AddWide(sum, Exp16(Sub16(Load16(x + i), max16)));
  if (i < n) {
    const V16 e = Exp16(Sub16(LoadFirst16(x + i, n - i), max16));
    sum = AddWide(sum, FirstLanes16(e, n - i, Zero16()));
  }
  return FoldD16(sum);
}

HWY_INLINE std::size_t CountPositive(const V16& v) {
  std::size_t count = 0;
  KV_UNROLL
  for (std::size_t i = 0; i < kParts; ++i) {
    count += hn::CountTrue(DF(), hn::Gt(v.part[i], hn::Zero(DF())));
  }
  return count;
}

std::size_t CumulativeWeightsImpl(const float* weights, std::size_t n, double* cumulative) {
  double total = 0;
  std::size_t positive = 0;
  for (std::size_t begin = 0; begin < n; begin += kWeightBlock) {
    const std::size_t end = std::min(n, begin + kWeightBlock);
    D16 sum = ZeroD16();
    std::size_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const V16 w = Load16(weights + i);
      positive += CountPositive(w);
      sum = AddWide(sum, w);
    }
    if (i < end) {
      const V16 w = LoadFirst16(weights + i, end - i);
      positive += CountPositive(w);
      sum = AddWide(sum, w);
    }
    total += FoldD16(sum);
    cumulative[begin / kWeightBlock] = total;
  }
  return positive;
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/scalar_math.h"

namespace kvasir::kernels {
namespace {

// R2 over up to n values, widened.
template <typename Value>
double LaneSumF64(std::size_t n, Value value) {
  double lane[16] = {};
  for (std::size_t i = 0; i < n; ++i) lane[i % 16] += static_cast<double>(value(i));
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  }
  return lane[0];
}

}  // namespace

HWY_EXPORT(ExpSumF64Impl);
HWY_EXPORT(CumulativeWeightsImpl);

double ExpSumF64(const float* x, std::size_t n, float max) {
  return HWY_DYNAMIC_DISPATCH(ExpSumF64Impl)(x, n, max);
}

double ReferenceExpSumF64(const float* x, std::size_t n, float max) {
  return LaneSumF64(n, [&](std::size_t i) { return ExpF32(x[i] - max); });
}

std::size_t CumulativeWeights(const float* weights, std::size_t n, double* cumulative) {
  return HWY_DYNAMIC_DISPATCH(CumulativeWeightsImpl)(weights, n, cumulative);
}

std::size_t ReferenceCumulativeWeights(const float* weights, std::size_t n, double* cumulative) {
  double total = 0;
  for (std::size_t begin = 0; begin < n; begin += kWeightBlock) {
    total += LaneSumF64(std::min(kWeightBlock, n - begin),
                        [&](std::size_t i) { return weights[begin + i]; });
    cumulative[begin / kWeightBlock] = total;
  }
  return static_cast<std::size_t>(
      std::count_if(weights, weights + n, [](float w) { return w > 0; }));
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
