#include "tensor/dequantise.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace kvasir::tensor {
namespace {

using Bytes = const std::uint8_t*;

float HalfAt(Bytes at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  return F16ToF32(bits);
}

// Blocks of 32 numbers.

// f16 scale; 32 int8.
void DecodeQ8(Bytes block, float* out) {
  const float scale = HalfAt(block);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
}

// f16 scale; f16 minimum, if any, which is added; 32 fifth bits, if any; 32 nibbles: byte i holds
// elements i and i + 16. Without a minimum the numbers are centred about 0.
template <bool kMinimum, bool kFifthBit>
void DecodeNibbles(Bytes block, float* out) {
  const float scale = HalfAt(block);
  const float minimum = kMinimum ? HalfAt(block + 2) : 0.0f;
  Bytes rest = block + (kMinimum ? 4 : 2);
  std::uint32_t fifth = 0;
  if constexpr (kFifthBit) {
    std::memcpy(&fifth, rest, 4);
    rest += 4;
  }
  constexpr int kCentre = kMinimum ? 0 : kFifthBit ? 16 : 8;
  for (std::size_t i = 0; i < 32; ++i) {
    const int nibble = i < 16 ? rest[i] & 15 : rest[i - 16] >> 4;
    const int q = nibble + static_cast<int>(fifth >> i & 1u) * 16 - kCentre;
    const float scaled = scale * static_cast<float>(q);
    out[i] = kMinimum ? scaled + minimum : scaled;
  }
}

// Blocks of 256 numbers, in groups with small integer scales of their own.

// Six-bit scale and minimum of group 0 … 7 in twelve bytes: of groups 0 … 3 the low bits of bytes
// 0 … 3 and 4 … 7; of groups 4 … 7 nibbles of bytes 8 … 11, above which stand the two high bits
// left free in the former.
struct GroupScale {
  int scale;
  int minimum;
};
GroupScale SixBitScale(Bytes scales, std::size_t group) {
  if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
  return {(scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4,
          (scales[group + 4] >> 4) | (scales[group] >> 6) << 4};
}

// f16 scale; f16 minimum, which is taken off; scales of 8 groups of 32; for Q5_K 32 bytes of fifth
// bits, bit g of byte i for element i of group g; nibbles: groups 2p and 2p + 1 in 32 bytes.
template <bool kFifthBit>
void DecodeQ4KOrQ5K(Bytes block, float* out) {
  const float scale = HalfAt(block);
  const float minimum = HalfAt(block + 2);
  const Bytes fifth = block + 16;
  const Bytes nibbles = block + (kFifthBit ? 48 : 16);
  for (std::size_t group = 0; group < 8; ++group) {
    const GroupScale own = SixBitScale(block + 4, group);
    const float group_scale = scale * static_cast<float>(own.scale);
    const float group_minimum = minimum * static_cast<float>(own.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const int byte = nibbles[group / 2 * 32 + i];
      int q = group % 2 == 0 ? byte & 15 : byte >> 4;
      if (kFifthBit) q += (fifth[i] >> group & 1) * 16;
      out[group * 32 + i] = group_scale * static_cast<float>(q) - group_minimum;
    }
  }
}

// 16 groups of 16, each with a nibble of scale and one of minimum; 64 bytes of two-bit numbers;
// f16 scale; f16 minimum. Byte i of a half's 32 holds elements i, i + 32, i + 64 and i + 96 of that
// half.
int TwoBits(Bytes numbers, std::size_t element) {
  const std::size_t in_half = element % 128;
  return numbers[element / 128 * 32 + in_half % 32] >> (in_half / 32 * 2) & 3;
}
void DecodeQ2K(Bytes block, float* out) {
  const float scale = HalfAt(block + 80);
  const float minimum = HalfAt(block + 82);
  for (std::size_t i = 0; i < 256; ++i) {
    const int own = block[i / 16];
    const float scaled = scale * static_cast<float>(own & 15);
    out[i] = scaled * static_cast<float>(TwoBits(block + 16, i)) -
             minimum * static_cast<float>(own >> 4);
  }
}

// 32 bytes of third bits, bit e / 32 of byte e % 32, which stand for 4 and without which 4 is taken
// off; two-bit numbers; six-bit scales of 16 groups of 16 in twelve bytes, less 32: eight bytes of
// low nibbles, then the high bits in pairs; f16 scale.
void DecodeQ3K(Bytes block, float* out) {
  const Bytes scales = block + 96;
  const float scale = HalfAt(block + 108);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t group = i / 16;
    const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float scaled = scale * static_cast<float>(low + high * 16 - 32);
    const int third = block[i % 32] >> (i / 32) & 1;
    out[i] = scaled * static_cast<float>(TwoBits(block + 32, i) + third * 4 - 4);
  }
}

// 128 bytes of low nibbles and 64 of two high bits, of numbers that are centred about 0; int8
// scales of 16 groups of 16; f16 scale. Of a half's elements e: nibble e / 64 of byte e % 64, and
// bits e / 32 of byte e % 32.
void DecodeQ6K(Bytes block, float* out) {
  const float scale = HalfAt(block + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t in_half = i % 128;
    const int byte = block[i / 128 * 64 + in_half % 64];
    const int low = in_half < 64 ? byte & 15 : byte >> 4;
    const int q = low + TwoBits(block + 128, i) * 16 - 32;
    const auto own = static_cast<std::int8_t>(block[192 + i / 16]);
    out[i] = scale * static_cast<float>(own) * static_cast<float>(q);
  }
}

using Decode = void (*)(Bytes block, float* out);

Decode DecodeOf(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return DecodeQ8;
    case DType::kQ4_0:
      return DecodeNibbles<false, false>;
    case DType::kQ4_1:
      return DecodeNibbles<true, false>;
    case DType::kQ5_0:
      return DecodeNibbles<false, true>;
    case DType::kQ5_1:
      return DecodeNibbles<true, true>;
    case DType::kQ2_K:
      return DecodeQ2K;
    case DType::kQ3_K:
      return DecodeQ3K;
    case DType::kQ4_K:
      return DecodeQ4KOrQ5K<false>;
    case DType::kQ5_K:
      return DecodeQ4KOrQ5K<true>;
    case DType::kQ6_K:
      return DecodeQ6K;
    default:
      return nullptr;
  }
}

}  // namespace

void Dequantise(DType dtype, std::span<const std::byte> blocks, std::span<float> out) {
  const Decode decode = DecodeOf(dtype);
  KV_CHECK(decode != nullptr);
  KV_CHECK(out.size() % BlockElements(dtype) == 0 && blocks.size() == BytesOf(dtype, out.size()));
  auto from = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < out.size(); i += BlockElements(dtype)) {
    decode(from, out.data() + i);
    from += BlockBytes(dtype);
  }
}

}  // namespace kvasir::tensor
