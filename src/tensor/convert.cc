#include "tensor/convert.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/dequantise.h"
#include "tensor/half.h"
#include "tensor/quantise.h"

namespace kvasir::tensor {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

void ConvertToF32(DType dtype, std::span<const std::byte> source, std::span<float> out) {
  KV_CHECK(out.size() % BlockElements(dtype) == 0 && source.size() == BytesOf(dtype, out.size()));
  if (dtype == DType::kF32) {
    if (!out.empty()) std::memcpy(out.data(), source.data(), source.size());
    return;
  }
  if (BlockElements(dtype) > 1) return Dequantise(dtype, source, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, source.data() + 2 * i, 2);
    out[i] = dtype == DType::kF16 ? F16ToF32(bits) : BF16ToF32(bits);
  }
}

std::vector<std::byte> ConvertFromF32(DType dtype, std::span<const float> values) {
  KV_CHECK(IsWritten(dtype) && values.size() % BlockElements(dtype) == 0);
  std::vector<std::byte> bytes(BytesOf(dtype, values.size()));
  if (dtype == DType::kF32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (BlockElements(dtype) > 1) {
    Quantise(dtype, values, bytes);
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = dtype == DType::kF16 ? F32ToF16(values[i]) : F32ToBF16(values[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

}  // namespace kvasir::tensor
