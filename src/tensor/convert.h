// Whole arrays between f32 and file element types.
#ifndef KVASIR_TENSOR_CONVERT_H_
#define KVASIR_TENSOR_CONVERT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace kvasir::tensor {

// Requires source.size() == BytesOf(dtype, out.size()). Source may be unaligned. Exact for all but
// the block types with a minimum, of which each number is rounded once (dequantise.h).
void ConvertToF32(DType dtype, std::span<const std::byte> source, std::span<float> out);

// Whether ConvertFromF32 writes this type.
constexpr bool IsWritten(DType dtype) { return dtype <= DType::kQ4_0; }

// Little-endian elements: f16 and bf16 rounded to nearest even, Q8_0 and Q4_0 as quantise.h says.
// Requires a type that is written, and whole blocks.
std::vector<std::byte> ConvertFromF32(DType dtype, std::span<const float> values);

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_CONVERT_H_
