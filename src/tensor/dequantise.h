// GGUF's block types into f32.
//
// Source: the block structures of the ggml project (ggml-common.h) and what its reference reader
// makes of them (ggml-quants.c).
#ifndef KVASIR_TENSOR_DEQUANTISE_H_
#define KVASIR_TENSOR_DEQUANTISE_H_

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace kvasir::tensor {

// Every number is the value its block names, in one f32: scale · q is exact for all types (at most
// 23 significant bits), and where a minimum is added or taken off, that sum is rounded once. Scales
// are f16 and may be infinite or NaN, which then show in the numbers.
// Requires a block type, whole blocks, and blocks.size() == BytesOf(dtype, out.size()).
void Dequantise(DType dtype, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_DEQUANTISE_H_
