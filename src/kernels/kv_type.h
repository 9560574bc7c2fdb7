// What cached keys and values are stored as, and the bytes of their tiles. A tile holds 16
// positions of one kv head, numbers first, then what the numbers are scaled by:
//
//   type          K tile                                 V tile
//   f32           f32 [head_dim][16]                     f32 [16][head_dim]
//   f16, bf16     u16 [head_dim][16]                     u16 [16][head_dim]
//   int8          i8 [head_dim][16], scales              i8 [16][head_dim], scales
//   int4          u8 [pairs][16], scales, minima         u8 [16][pairs], scales, minima
//   int4 channel  u8 [pairs][16]                         –
//
// pairs = ceil(head_dim / 2); scales and minima are bf16 [16], of one position each. Two numbers of
// 4 bits share a byte: of a key, channel 2p is the low half of byte p and channel 2p + 1 the high
// half. A value row is cut into runs of 32 channels, the last perhaps shorter: the bytes of a run
// of r hold its first ceil(r / 2) channels in their low halves and the others in their high halves.
//
// Rounded per channel, a key's number n of channel d stands for fma(scale[d], n, minimum[d]), with
// a scale and a minimum of each channel for each group of positions.
#ifndef KVASIR_KERNELS_KV_TYPE_H_
#define KVASIR_KERNELS_KV_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::kernels {

// Positions of a tile; also the number of virtual lanes of every vector reduction (R2).
inline constexpr std::size_t kLanes = 16;

enum class KvType : std::uint8_t {
  kF32,
  kF16,          // Nearest even; finite numbers beyond ±65,504 become that.
  kBf16,         // Likewise, to bfloat16's largest.
  kInt8,         // A scale for each position and head.
  kInt4,         // A scale and a minimum for each position and head.
  kInt4Channel,  // Keys only: a scale and a minimum for each channel of a group of positions.
};

constexpr std::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBf16:
      return "bf16";
    case KvType::kInt8:
      return "int8";
    case KvType::kInt4:
      return "int4";
    case KvType::kInt4Channel:
      return "int4 per channel";
  }
  return "";
}

inline constexpr std::size_t kTileScaleBytes = kLanes * sizeof(std::uint16_t);  // bf16 [16]

// Bytes of the numbers of a tile: where its scales begin.
constexpr std::size_t TileNumberBytes(KvType type, std::size_t head_dim) {
  switch (type) {
    case KvType::kF32:
      return head_dim * kLanes * 4;
    case KvType::kF16:
    case KvType::kBf16:
      return head_dim * kLanes * 2;
    case KvType::kInt8:
      return head_dim * kLanes;
    case KvType::kInt4:
    case KvType::kInt4Channel:
      return (head_dim + 1) / 2 * kLanes;
  }
  return 0;
}

// Bytes of the scales and minima that a tile carries.
constexpr std::size_t TileScalesBytes(KvType type) {
  return type == KvType::kInt8 ? kTileScaleBytes : type == KvType::kInt4 ? 2 * kTileScaleBytes : 0;
}

// Bytes of a tile of 16 positions of one kv head, a multiple of 16. head_dim small enough that it
// does not wrap (kvcache checks it). A value tile is never of kInt4Channel.
constexpr std::size_t KTileBytes(KvType type, std::size_t head_dim) {
  return TileNumberBytes(type, head_dim) + TileScalesBytes(type);
}
constexpr std::size_t VTileBytes(KvType type, std::size_t head_dim) {
  return KTileBytes(type, head_dim);
}

// kInt4Channel: bytes of the scales and minima of one kv head and one group of positions,
// bf16 [head_dim] each.
constexpr std::size_t ChannelScaleBytes(std::size_t head_dim) {
  return head_dim * 2 * sizeof(std::uint16_t);
}

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_KV_TYPE_H_
