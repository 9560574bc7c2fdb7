#include "kernels/rope.h"

#include <cmath>
#include <cstdint>

#include "kernels/math_constants.h"
#include "kernels/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"
#include "kernels/vec16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {

using DD = hn::CappedTag<double, 8>;
using VD = hn::Vec<DD>;
using DU = hn::RebindToUnsigned<DD>;
using DHalf = hn::Rebind<float, DD>;
constexpr std::size_t kDoubles = hn::MaxLanes(DD());

// SinCosF64 of scalar_math.cc, operation by operation.
HWY_INLINE void SinCosVector(VD x, VD& sine, VD& cosine) {
  const DD d;
  const DU du;
  const VD shifted = hn::MulAdd(x, hn::Set(d, kTwoOverPi), hn::Set(d, kRoundMagic));
  const auto quarter = hn::BitCast(du, shifted);
  const VD n = hn::Sub(shifted, hn::Set(d, kRoundMagic));
  const VD r =
      hn::NegMulAdd(n, hn::Set(d, kHalfPiLow), hn::NegMulAdd(n, hn::Set(d, kHalfPiHigh), x));
  const VD r2 = hn::Mul(r, r);
  VD s = hn::Set(d, kSin[6]);
  VD c = hn::Set(d, kCos[6]);
  for (int i = 5; i >= 0; --i) {
    s = hn::MulAdd(s, r2, hn::Set(d, kSin[i]));
    c = hn::MulAdd(c, r2, hn::Set(d, kCos[i]));
  }
  s = hn::MulAdd(hn::Mul(s, r2), r, r);
  c = hn::MulAdd(c, hn::Mul(r2, r2), hn::MulAdd(hn::Set(d, -0.5), r2, hn::Set(d, 1.0)));
  // Odd quarters swap the two; bit 1 of the quarter, and of the next, is the sign.
  const auto one = hn::Set(du, 1);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  const VD sine_sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quarter, hn::Set(du, 2))));
  const VD cosine_sign =
      hn::BitCast(d, hn::ShiftLeft<62>(hn::And(hn::Add(quarter, one), hn::Set(du, 2))));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

void RopeTurnImpl(const double* frequencies, std::size_t pairs, std::size_t position, float* turn) {
  const DD d;
  const DHalf df;
  const VD position_vector = hn::Set(d, static_cast<double>(position));
  for (std::size_t i = 0; i < pairs; i += kDoubles) {
    const std::size_t count = pairs - i < kDoubles ? pairs - i : kDoubles;
    HWY_ALIGN double buffer[kDoubles] = {};
    for (std::size_t j = 0; j < count; ++j) buffer[j] = frequencies[i + j];
    VD sine, cosine;
    SinCosVector(hn::Mul(position_vector, hn::Load(d, buffer)), sine, cosine);
    HWY_ALIGN float cosines[16], sines[16];
    hn::Store(hn::DemoteTo(df, cosine), df, cosines);
    hn::Store(hn::DemoteTo(df, sine), df, sines);
    for (std::size_t j = 0; j < count; ++j) {
      turn[i + j] = cosines[j];
      turn[pairs + i + j] = sines[j];
    }
  }
}

HWY_INLINE void Turn(VF cosine, VF sine, VF& x0, VF& x1) {
  const VF y0 = hn::MulSub(x0, cosine, hn::Mul(x1, sine));
  x1 = hn::MulAdd(x1, cosine, hn::Mul(x0, sine));
  x0 = y0;
}

// kWidth pairs of one head.
HWY_INLINE void TurnPairs(const RopeArgs& a, std::size_t first, float* x) {
  const DF d;
  const VF cosine = hn::LoadU(d, a.turn + first);
  const VF sine = hn::LoadU(d, a.turn + a.pairs + first);
  VF x0, x1;
  if (a.pairing == RopePairing::kHalves) {
    x0 = hn::LoadU(d, x + first);
    x1 = hn::LoadU(d, x + a.pairs + first);
    Turn(cosine, sine, x0, x1);
    hn::StoreU(x0, d, x + first);
    hn::StoreU(x1, d, x + a.pairs + first);
  } else {
    hn::LoadInterleaved2(d, x + 2 * first, x0, x1);
    Turn(cosine, sine, x0, x1);
    hn::StoreInterleaved2(x0, x1, d, x + 2 * first);
  }
}

// The last pairs of one head, fewer than kWidth, by way of padded copies.
HWY_INLINE void TurnTail(const RopeArgs& a, std::size_t first, float* x) {
  const std::size_t count = a.pairs - first;
  const bool halves = a.pairing == RopePairing::kHalves;
  HWY_ALIGN float buffer[4][16] = {};  // x0, x1, cosines, sines
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t i = first + j;
    buffer[0][j] = halves ? x[i] : x[2 * i];
    buffer[1][j] = halves ? x[a.pairs + i] : x[2 * i + 1];
    buffer[2][j] = a.turn[i];
    buffer[3][j] = a.turn[a.pairs + i];
  }
  const DF d;
  VF x0 = hn::Load(d, buffer[0]);
  VF x1 = hn::Load(d, buffer[1]);
  Turn(hn::Load(d, buffer[2]), hn::Load(d, buffer[3]), x0, x1);
  hn::Store(x0, d, buffer[0]);
  hn::Store(x1, d, buffer[1]);
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t i = first + j;
    (halves ? x[i] : x[2 * i]) = buffer[0][j];
    (halves ? x[a.pairs + i] : x[2 * i + 1]) = buffer[1][j];
  }
}

void RopeImpl(const RopeArgs& a) {
  for (std::size_t head = 0; head < a.heads; ++head) {
    float* x = a.x + head * a.head_stride;
    std::size_t i = 0;
    for (; i + kWidth <= a.pairs; i += kWidth) TurnPairs(a, i, x);
    if (i < a.pairs) TurnTail(a, i, x);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(RopeTurnImpl);
HWY_EXPORT(RopeImpl);

void RopeTurn(const double* frequencies, std::size_t pairs, std::size_t position, float* turn) {
  HWY_DYNAMIC_DISPATCH(RopeTurnImpl)(frequencies, pairs, position, turn);
}

void ReferenceRopeTurn(const double* frequencies, std::size_t pairs, std::size_t position,
                       float* turn) {
  for (std::size_t i = 0; i < pairs; ++i) {
    const SinCos angle = SinCosF64(static_cast<double>(position) * frequencies[i]);
    turn[i] = static_cast<float>(angle.cos);
    turn[pairs + i] = static_cast<float>(angle.sin);
  }
}

void Rope(const RopeArgs& args) { HWY_DYNAMIC_DISPATCH(RopeImpl)(args); }

void ReferenceRope(const RopeArgs& args) {
  const bool halves = args.pairing == RopePairing::kHalves;
  for (std::size_t head = 0; head < args.heads; ++head) {
    float* x = args.x + head * args.head_stride;
    for (std::size_t i = 0; i < args.pairs; ++i) {
      float& x0 = halves ? x[i] : x[2 * i];
      float& x1 = halves ? x[args.pairs + i] : x[2 * i + 1];
      const float cosine = args.turn[i];
      const float sine = args.turn[args.pairs + i];
      const float y0 = std::fma(x0, cosine, -(x1 * sine));
      x1 = std::fma(x1, cosine, x0 * sine);
      x0 = y0;
    }
  }
}

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
