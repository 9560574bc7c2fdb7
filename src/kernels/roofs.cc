#include "kernels/roofs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/roofs.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::uint32_t SumWordsImpl(const std::uint32_t* HWY_RESTRICT words, std::size_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  std::size_t i = 0;
  for (; i + 8 * lanes <= count; i += 8 * lanes) {
    const std::uint32_t* p = words + i;
    s0 = hn::Add(s0, hn::LoadU(d, p));
    s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
    s4 = hn::Add(s4, hn::LoadU(d, p + 4 * lanes));
    s5 = hn::Add(s5, hn::LoadU(d, p + 5 * lanes));
    s6 = hn::Add(s6, hn::LoadU(d, p + 6 * lanes));
    s7 = hn::Add(s7, hn::LoadU(d, p + 7 * lanes));
  }
  s0 =
      hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  // Lane by lane: the compiler's own reduction adds signed numbers, whose overflow is undefined.
  HWY_ALIGN std::uint32_t lane[hn::MaxLanes(d)];
  hn::Store(s0, d, lane);
  std::uint32_t sum = 0;
  for (std::size_t j = 0; j < lanes; ++j) sum += lane[j];
  for (; i < count; ++i) sum += words[i];
  return sum;
}

FmaWork RunFmaChainsImpl(std::size_t rounds) {
  const hn::ScalableTag<float> d;
  const auto half = hn::Set(d, 0.5f);
  const auto one = hn::Set(d, 1.0f);
  // Different starts, 2 + 1 … 2 + 12, or the compiler would make one chain of them.
  auto x0 = hn::Set(d, 3.0f), x1 = hn::Set(d, 4.0f), x2 = hn::Set(d, 5.0f);
  auto x3 = hn::Set(d, 6.0f), x4 = hn::Set(d, 7.0f), x5 = hn::Set(d, 8.0f);
  auto x6 = hn::Set(d, 9.0f), x7 = hn::Set(d, 10.0f), x8 = hn::Set(d, 11.0f);
  auto x9 = hn::Set(d, 12.0f), xa = hn::Set(d, 13.0f), xb = hn::Set(d, 14.0f);
  for (std::size_t i = 0; i < rounds; ++i) {
    x0 = hn::MulAdd(x0, half, one);
    x1 = hn::MulAdd(x1, half, one);
    x2 = hn::MulAdd(x2, half, one);
    x3 = hn::MulAdd(x3, half, one);
    x4 = hn::MulAdd(x4, half, one);
    x5 = hn::MulAdd(x5, half, one);
    x6 = hn::MulAdd(x6, half, one);
    x7 = hn::MulAdd(x7, half, one);
    x8 = hn::MulAdd(x8, half, one);
    x9 = hn::MulAdd(x9, half, one);
    xa = hn::MulAdd(xa, half, one);
    xb = hn::MulAdd(xb, half, one);
  }
  const auto low = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(x4, x5));
  const auto high = hn::Add(hn::Add(hn::Add(x6, x7), hn::Add(x8, x9)), hn::Add(xa, xb));
  return {2.0 * 12 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d)),
          hn::GetLane(hn::Add(low, high))};
}

}  // namespace HWY_NAMESPACE
}  // namespace kvasir::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::kernels {

HWY_EXPORT(SumWordsImpl);
HWY_EXPORT(RunFmaChainsImpl);

std::uint32_t SumWords(const std::uint32_t* words, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumWordsImpl)(words, count);
}

FmaWork RunFmaChains(std::size_t rounds) { return HWY_DYNAMIC_DISPATCH(RunFmaChainsImpl)(rounds); }

}  // namespace kvasir::kernels
#endif  // HWY_ONCE
