// Whole arrays between f32 and file element types.
#ifndef KVASIR_TENSOR_CONVERT_H_
#define KVASIR_TENSOR_CONVERT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace kvasir::tensor {

// Requires source.size() == out.size() · BytesPerElement(dtype). Source may be unaligned.
void ConvertToF32(DType dtype, std::span<const std::byte> source, std::span<float> out);

// Little-endian elements, rounded to nearest even.
std::vector<std::byte> ConvertFromF32(DType dtype, std::span<const float> values);

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_CONVERT_H_
