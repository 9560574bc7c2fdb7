#include "tensor/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace kvasir::tensor {
namespace {

constexpr std::size_t kBlock = 32;

// Keeps d as f16 at `out`, and gives its reciprocal.
float StoreScale(float d, std::byte* out) {
  const std::uint16_t half = F32ToF16(d);
  std::memcpy(out, &half, 2);
  const float reciprocal = d == 0.0f ? 0.0f : 1.0f / d;
  return std::isfinite(reciprocal) ? reciprocal : 0.0f;
}

// To the nearest integer, ties away from zero; |x| < 2^31. The difference is exact.
std::int32_t RoundAway(float x) {
  const auto whole = static_cast<std::int32_t>(x);
  const float rest = x - static_cast<float>(whole);
  return whole + (rest >= 0.5f ? 1 : rest <= -0.5f ? -1 : 0);
}

void EncodeQ8(const float* x, std::byte* out) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[i]));
  const float reciprocal = StoreScale(largest / 127.0f, out);
  for (std::size_t i = 0; i < kBlock; ++i) {
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(RoundAway(x[i] * reciprocal)));
  }
}

void EncodeQ4(const float* x, std::byte* out) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  }
  const float reciprocal = StoreScale(largest / -8.0f, out);
  const auto nibble = [&](float value) {
    return std::min(15, static_cast<int>(value * reciprocal + 8.5f));
  };
  for (std::size_t i = 0; i < kBlock / 2; ++i) {  // Elements i and i + 16 share a byte.
    out[2 + i] = static_cast<std::byte>(nibble(x[i]) | nibble(x[i + kBlock / 2]) << 4);
  }
}

}  // namespace

void Quantise(DType dtype, std::span<const float> values, std::span<std::byte> out) {
  KV_CHECK(dtype == DType::kQ8_0 || dtype == DType::kQ4_0);
  KV_CHECK(values.size() % kBlock == 0 && out.size() == BytesOf(dtype, values.size()));
  std::byte* to = out.data();
  for (std::size_t i = 0; i < values.size(); i += kBlock, to += BlockBytes(dtype)) {
    dtype == DType::kQ8_0 ? EncodeQ8(values.data() + i, to) : EncodeQ4(values.data() + i, to);
  }
}

}  // namespace kvasir::tensor
