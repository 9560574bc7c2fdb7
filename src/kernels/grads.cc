#include "kernels/grads.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/grads.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE V16 LoadUpTo(const float* p, std::size_t i, std::size_t n) {
  return i + 16 <= n ? Load16(p + i) : LoadFirst16(p + i, n - i);
}
HWY_INLINE void StoreUpTo(const V16& v, float* p, std::size_t i, std::size_t n) {
  if (i + 16 <= n) {
    Store16(v, p + i);
  } else {
    StoreFirst16(v, p + i, n - i);
  }
}

void AddColumnsImpl(const float* x, std::size_t rows, std::size_t stride, std::size_t begin,
                    std::size_t end, float* sums) {
  for (std::size_t i = begin; i < end; i += 16) {
    V16 sum = LoadUpTo(sums, i, end);
    for (std::size_t r = 0; r < rows; ++r) sum = Add16(sum, LoadUpTo(x + r * stride, i, end));
    StoreUpTo(sum, sums, i, end);
  }
}

void AddIntoImpl(const float* x, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; i += 16)
    StoreUpTo(Add16(LoadUpTo(y, i, n), LoadUpTo(x, i, n)), y, i, n);
}

void CausalSoftmaxRowImpl(float* scores, std::size_t visible, std::size_t n, float scale) {
  const V16 scale16 = Set16(scale);
  const V16 lowest = Set16(-HUGE_VALF);
  V16 max = lowest;
  for (std::size_t i = 0; i < visible; i += 16) {
    const V16 s = FirstLanes16(Mul16(LoadUpTo(scores, i, n), scale16), visible - i, lowest);
    StoreUpTo(s, scores, i, n);
    max = Max16(max, s);
  }
  const V16 m16 = Set16(MaxLane16(max));
  V16 sum = Zero16();
  for (std::size_t i = 0; i < visible; i += 16) {
    const V16 p = FirstLanes16(Exp16(Sub16(LoadUpTo(scores, i, n), m16)), visible - i, Zero16());
    StoreUpTo(p, scores, i, n);
    sum = Add16(sum, p);
  }
  const V16 inverse = Set16(1.0f / Fold16(sum));
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 p = i < visible ? Mul16(LoadUpTo(scores, i, n), inverse) : Zero16();
    StoreUpTo(p, scores, i, n);
  }
}

void CausalSoftmaxGradRowImpl(const float* p, float* grad, std::size_t visible, std::size_t n,
                              float scale) {
  V16 sum = Zero16();
  for (std::size_t i = 0; i < visible; i += 16) {
    // What lies beyond the visible is nobody's: it may be anything.
    const V16 weights = FirstLanes16(LoadUpTo(p, i, n), visible - i, Zero16());
    const V16 upstream = FirstLanes16(LoadUpTo(grad, i, n), visible - i, Zero16());
    sum = Fma16(upstream, weights, sum);
  }
  const V16 mean = Set16(Fold16(sum));
  const V16 scale16 = Set16(scale);
  for (std::size_t i = 0; i < n; i += 16) {
    V16 g = Zero16();
    if (i < visible) {
      g = Mul16(Mul16(LoadUpTo(p, i, n), Sub16(LoadUpTo(grad, i, n), mean)), scale16);
      g = FirstLanes16(g, visible - i, Zero16());
    }
    StoreUpTo(g, grad, i, n);
  }
}

void AdamWImpl(const AdamWStep& s, const float* gradient, std::size_t n, float* parameter,
               float* first_moment, float* second_moment) {
  const V16 b1 = Set16(s.beta1), b2 = Set16(s.beta2);
  const V16 a1 = Set16(1.0f - s.beta1), a2 = Set16(1.0f - s.beta2);
  const V16 c1 = Set16(s.correction1), c2 = Set16(s.correction2);
  const V16 rate = Set16(-s.learning_rate), decay = Set16(1.0f - s.learning_rate * s.weight_decay);
  const V16 epsilon = Set16(s.epsilon), scale = Set16(s.gradient_scale);
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 g = Mul16(LoadUpTo(gradient, i, n), scale);
    const V16 m = Fma16(b1, LoadUpTo(first_moment, i, n), Mul16(a1, g));
    const V16 v = Fma16(b2, LoadUpTo(second_moment, i, n), Mul16(a2, Mul16(g, g)));
    const V16 update = Div16(Mul16(m, c1), Add16(Sqrt16(Mul16(v, c2)), epsilon));
    const V16 p = Fma16(rate, update, Mul16(LoadUpTo(parameter, i, n), decay));
    StoreUpTo(m, first_moment, i, n);
    StoreUpTo(v, second_moment, i, n);
    StoreUpTo(p, parameter, i, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(AddColumnsImpl);
HWY_EXPORT(AddIntoImpl);
HWY_EXPORT(CausalSoftmaxRowImpl);
HWY_EXPORT(CausalSoftmaxGradRowImpl);
HWY_EXPORT(AdamWImpl);

void AddColumns(const float* x, std::size_t rows, std::size_t stride, std::size_t begin,
                std::size_t end, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddColumnsImpl)(x, rows, stride, begin, end, sums);
}

void AddInto(const float* x, std::size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(AddIntoImpl)(x, n, y);
}

void CausalSoftmaxRow(float* scores, std::size_t visible, std::size_t n, float scale) {
  HWY_DYNAMIC_DISPATCH(CausalSoftmaxRowImpl)(scores, visible, n, scale);
}

void CausalSoftmaxGradRow(const float* p, float* grad, std::size_t visible, std::size_t n,
                          float scale) {
  HWY_DYNAMIC_DISPATCH(CausalSoftmaxGradRowImpl)(p, grad, visible, n, scale);
}

void AdamW(const AdamWStep& step, const float* gradient, std::size_t n, float* parameter,
           float* first_moment, float* second_moment) {
  HWY_DYNAMIC_DISPATCH(AdamWImpl)(step, gradient, n, parameter, first_moment, second_moment);
}

double SumSquares(const float* x, std::size_t n) {
  double lane[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) lane[j] += static_cast<double>(x[i + j]) * x[i + j];
  }
  for (; i < n; ++i) lane[i % 8] += static_cast<double>(x[i]) * x[i];
  for (std::size_t half = 4; half >= 1; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  }
  return lane[0];
}

void Dropout(const DropoutKey& key, std::uint32_t drop, float scale, std::size_t first,
             std::size_t n, float* x) {
  for (std::size_t i = 0; i < n; i += 8) {
    const auto words = base::Philox4x32(
        key.seed, {static_cast<std::uint32_t>((first + i) / 8), key.sequence, key.site, key.step});
    const std::size_t count = std::min<std::size_t>(8, n - i);
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint32_t lane = words[j / 2] >> (j % 2 * 16) & 0xFFFFu;
      x[i + j] = lane >= drop ? x[i + j] * scale : 0.0f;
    }
  }
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
