#include "kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

// Elements i … i+15, zeros beyond n.
HWY_INLINE V16 LoadTail(const float* p, std::size_t i, std::size_t n) {
  return i + 16 <= n ? Load16(p + i) : LoadFirst16(p + i, n - i);
}
HWY_INLINE void StoreTail(const V16& v, float* p, std::size_t i, std::size_t n) {
  if (i + 16 <= n) {
    Store16(v, p + i);
  } else {
    StoreFirst16(v, p + i, n - i);
  }
}

#ifdef KVASIR_CANARY
// The build that `verify` must refuse (CMakeLists.txt): an order of a sum that depends on where its
// row lies, as in libraries that peel loops to alignment.
bool SumsBackwards(const float* values, std::size_t n) {
  return reinterpret_cast<std::uintptr_t>(values) / (n * sizeof(float)) % 2 == 1;
}
#else
constexpr bool SumsBackwards(const float*, std::size_t) { return false; }
#endif

float LaneSumImpl(const float* values, std::size_t n) {
  V16 sum = Zero16();
  const bool backwards = SumsBackwards(values, n);
  for (std::size_t i = 0; i < n; i += 16) {
    sum = Add16(sum, LoadTail(values, backwards ? (n - 1 - i) / 16 * 16 : i, n));
  }
  return Fold16(sum);
}

void LayerNormImpl(const float* x, const float* gain, const float* bias, std::size_t n, float eps,
                   float* y, RowStats* stats) {
  const float mean = LaneSumImpl(x, n) / static_cast<float>(n);
  const V16 mean16 = Set16(mean);
  V16 squares = Zero16();
  for (std::size_t i = 0; i < n; i += 16) {
    V16 d = Sub16(LoadTail(x, i, n), mean16);
    if (i + 16 > n) d = FirstLanes16(d, n - i, Zero16());
    squares = Fma16(d, d, squares);
  }
  const float variance = Fold16(squares) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(variance + eps);
  const V16 inverse16 = Set16(inverse);
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 normal = Mul16(Sub16(LoadTail(x, i, n), mean16), inverse16);
    StoreTail(Fma16(normal, LoadTail(gain, i, n), LoadTail(bias, i, n)), y, i, n);
  }
  if (stats) *stats = {mean, inverse};
}

// 1 / sqrt(mean square + eps).
HWY_INLINE float RmsInverse(const float* x, std::size_t n, float eps) {
  V16 squares = Zero16();
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 v = LoadTail(x, i, n);  // Zeros beyond n add nothing.
    squares = Fma16(v, v, squares);
  }
  const float mean = Fold16(squares) / static_cast<float>(n);
  return 1.0f / std::sqrt(mean + eps);
}

void RmsNormImpl(const float* x, const float* gain, std::size_t n, float eps, float* y) {
  const V16 inverse = Set16(RmsInverse(x, n, eps));
  for (std::size_t i = 0; i < n; i += 16) {
    StoreTail(Mul16(Mul16(LoadTail(x, i, n), inverse), LoadTail(gain, i, n)), y, i, n);
  }
}

// dx = inverse · (g − mean(g) − xhat · mean(g · xhat)) with g = dy · gain.
void InputGradImpl(const LayerNormGradArgs& a) {
  const V16 mean16 = Set16(a.stats.mean);
  const V16 inverse16 = Set16(a.stats.inverse_deviation);
  V16 sum_g = Zero16();
  V16 sum_gx = Zero16();
  for (std::size_t i = 0; i < a.n; i += 16) {
    const V16 g = Mul16(LoadTail(a.dy, i, a.n), LoadTail(a.gain, i, a.n));
    const V16 xhat = Mul16(Sub16(LoadTail(a.x, i, a.n), mean16), inverse16);
    sum_g = Add16(sum_g, g);
    sum_gx = Fma16(g, xhat, sum_gx);  // Lanes beyond n: g is 0.
  }
  const V16 mean_g = Set16(Fold16(sum_g) / static_cast<float>(a.n));
  const V16 mean_gx = Set16(Fold16(sum_gx) / static_cast<float>(a.n));
  for (std::size_t i = 0; i < a.n; i += 16) {
    const V16 g = Mul16(LoadTail(a.dy, i, a.n), LoadTail(a.gain, i, a.n));
    const V16 xhat = Mul16(Sub16(LoadTail(a.x, i, a.n), mean16), inverse16);
    const V16 centred = Sub16(Sub16(g, mean_g), Mul16(xhat, mean_gx));
    StoreTail(Fma16(inverse16, centred, LoadTail(a.dx, i, a.n)), a.dx, i, a.n);
  }
}

void ParameterGradImpl(const float* x, const float* dy, const RowStats* stats, std::size_t rows,
                       std::size_t n, std::size_t begin, std::size_t end, float* dgain,
                       float* dbias) {
  for (std::size_t i = begin; i < end; i += 16) {
    V16 gain = LoadTail(dgain, i, end);
    V16 bias = LoadTail(dbias, i, end);
    for (std::size_t r = 0; r < rows; ++r) {
      const V16 d = LoadTail(dy + r * n, i, end);
      const V16 xhat = Mul16(Sub16(LoadTail(x + r * n, i, end), Set16(stats[r].mean)),
                             Set16(stats[r].inverse_deviation));
      gain = Fma16(d, xhat, gain);
      bias = Add16(bias, d);
    }
    StoreTail(gain, dgain, i, end);
    StoreTail(bias, dbias, i, end);
  }
}

float RmsInputGradImpl(const float* x, const float* dy, const float* gain, std::size_t n, float eps,
                       float* dx) {
  const float inverse = RmsInverse(x, n, eps);
  const V16 inverse16 = Set16(inverse);
  V16 sum = Zero16();
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 g = Mul16(LoadTail(dy, i, n), LoadTail(gain, i, n));
    sum = Fma16(g, Mul16(LoadTail(x, i, n), inverse16), sum);
  }
  const V16 mean = Set16(Fold16(sum) / static_cast<float>(n));
  for (std::size_t i = 0; i < n; i += 16) {
    const V16 g = Mul16(LoadTail(dy, i, n), LoadTail(gain, i, n));
    const V16 xhat = Mul16(LoadTail(x, i, n), inverse16);
    StoreTail(Fma16(inverse16, Sub16(g, Mul16(xhat, mean)), LoadTail(dx, i, n)), dx, i, n);
  }
  return inverse;
}

void RmsGainGradImpl(const float* x, const float* dy, const RowStats* stats, std::size_t rows,
                     std::size_t n, std::size_t begin, std::size_t end, float* dgain) {
  for (std::size_t i = begin; i < end; i += 16) {
    V16 gain = LoadTail(dgain, i, end);
    for (std::size_t r = 0; r < rows; ++r) {
      const V16 xhat = Mul16(LoadTail(x + r * n, i, end), Set16(stats[r].inverse_deviation));
      gain = Fma16(LoadTail(dy + r * n, i, end), xhat, gain);
    }
    StoreTail(gain, dgain, i, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(LaneSumImpl);
HWY_EXPORT(LayerNormImpl);
HWY_EXPORT(RmsNormImpl);
HWY_EXPORT(InputGradImpl);
HWY_EXPORT(ParameterGradImpl);
HWY_EXPORT(RmsInputGradImpl);
HWY_EXPORT(RmsGainGradImpl);

float LaneSum(const float* values, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(LaneSumImpl)(values, n);
}

void LayerNorm(const float* x, const float* gain, const float* bias, std::size_t n, float eps,
               float* y, RowStats* stats) {
  HWY_DYNAMIC_DISPATCH(LayerNormImpl)(x, gain, bias, n, eps, y, stats);
}

void RmsNorm(const float* x, const float* gain, std::size_t n, float eps, float* y) {
  HWY_DYNAMIC_DISPATCH(RmsNormImpl)(x, gain, n, eps, y);
}

void LayerNormInputGrad(const LayerNormGradArgs& args) {
  HWY_DYNAMIC_DISPATCH(InputGradImpl)(args);
}

void LayerNormParameterGrad(const float* x, const float* dy, const RowStats* stats,
                            std::size_t rows, std::size_t n, std::size_t begin, std::size_t end,
                            float* dgain, float* dbias) {
  HWY_DYNAMIC_DISPATCH(ParameterGradImpl)(x, dy, stats, rows, n, begin, end, dgain, dbias);
}

float RmsNormInputGrad(const float* x, const float* dy, const float* gain, std::size_t n, float eps,
                       float* dx) {
  return HWY_DYNAMIC_DISPATCH(RmsInputGradImpl)(x, dy, gain, n, eps, dx);
}

void RmsNormGainGrad(const float* x, const float* dy, const RowStats* stats, std::size_t rows,
                     std::size_t n, std::size_t begin, std::size_t end, float* dgain) {
  HWY_DYNAMIC_DISPATCH(RmsGainGradImpl)(x, dy, stats, rows, n, begin, end, dgain);
}

namespace {

// The fold of 16 lanes that every reduction of the contract ends with.
float ReferenceFold(float* lane) {
  for (std::size_t half = 8; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
  }
  return lane[0];
}

}  // namespace

void ReferenceLayerNorm(const float* x, const float* gain, const float* bias, std::size_t n,
                        float eps, float* y, RowStats* stats) {
  float lane[16] = {};
  for (std::size_t i = 0; i < n; ++i) lane[i % 16] = lane[i % 16] + x[i];
  const float mean = ReferenceFold(lane) / static_cast<float>(n);
  std::fill(lane, lane + 16, 0.0f);
  for (std::size_t i = 0; i < n; ++i) {
    const float d = x[i] - mean;
    lane[i % 16] = std::fma(d, d, lane[i % 16]);
  }
  const float variance = ReferenceFold(lane) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(variance + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = std::fma((x[i] - mean) * inverse, gain[i], bias[i]);
  if (stats) *stats = {mean, inverse};
}

void ReferenceRmsNorm(const float* x, const float* gain, std::size_t n, float eps, float* y) {
  float lane[16] = {};
  for (std::size_t i = 0; i < n; ++i) lane[i % 16] = std::fma(x[i], x[i], lane[i % 16]);
  const float mean = ReferenceFold(lane) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * inverse * gain[i];
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
