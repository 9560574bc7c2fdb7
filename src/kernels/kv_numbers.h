// Single stored numbers of a tile, for the plain references and for reading back.
#ifndef KVASIR_KERNELS_KV_NUMBERS_H_
#define KVASIR_KERNELS_KV_NUMBERS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/kv_address.h"
#include "kernels/kv_type.h"
#include "tensor/half.h"

namespace kvasir::kernels {

// The number at `index` of a tile of numbers that have bytes of their own, exactly as f32.
inline float WholeNumber(const std::byte* tile, KvType type, std::size_t index) {
  switch (type) {
    case KvType::kF32:
      return reinterpret_cast<const float*>(tile)[index];
    case KvType::kF16:
      return tensor::F16ToF32(reinterpret_cast<const std::uint16_t*>(tile)[index]);
    case KvType::kBf16:
      return tensor::BF16ToF32(reinterpret_cast<const std::uint16_t*>(tile)[index]);
    default:
      return static_cast<float>(reinterpret_cast<const std::int8_t*>(tile)[index]);
  }
}

inline float Nibble(std::byte byte, bool high) {
  const auto bits = static_cast<unsigned>(byte);
  return static_cast<float>(high ? bits >> 4 : bits & 0xFu);
}

inline float KeyNumber(const std::byte* tile, KvType type, std::size_t d, std::size_t lane) {
  if (type == KvType::kInt4 || type == KvType::kInt4Channel) {
    return Nibble(tile[d / 2 * kLanes + lane], d % 2 != 0);
  }
  return WholeNumber(tile, type, d * kLanes + lane);
}

inline float ValueNumber(const std::byte* tile, KvType type, std::size_t row, std::size_t d,
                         std::size_t head_dim) {
  if (type == KvType::kInt4) {
    const NibblePlace place = ValueNibble(d, head_dim);
    return Nibble(tile[row * ((head_dim + 1) / 2) + place.byte], place.high);
  }
  return WholeNumber(tile, type, row * head_dim + d);
}

// What the numbers of one position of a tile are scaled by: fma(scale, n, minimum).
struct NumberScale {
  float scale = 1;
  float minimum = 0;
};
inline NumberScale PositionScale(const std::byte* tile, KvType type, std::size_t lane,
                                 std::size_t head_dim) {
  if (TileScalesBytes(type) == 0) return {};
  const std::uint16_t* scales = TileScales(tile, type, head_dim);
  NumberScale scale = {.scale = tensor::BF16ToF32(scales[lane])};
  if (type == KvType::kInt4) scale.minimum = tensor::BF16ToF32(scales[kLanes + lane]);
  return scale;
}
inline NumberScale ChannelScale(const std::uint16_t* scales, std::size_t d, std::size_t head_dim) {
  return {tensor::BF16ToF32(scales[d]), tensor::BF16ToF32(scales[head_dim + d])};
}

// The value that a number of this type and scale is read as.
inline float ReadAs(KvType type, NumberScale scale, float number) {
  if (type == KvType::kInt8) return scale.scale * number;
  if (type == KvType::kInt4 || type == KvType::kInt4Channel) {
    return std::fma(scale.scale, number, scale.minimum);
  }
  return number;
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_NUMBERS_H_
