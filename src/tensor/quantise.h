// f32 into GGUF's block types Q8_0 and Q4_0.
//
// Source: the reference rounding of the ggml project (ggml-quants.c, quantize_row_q8_0_ref and
// quantize_row_q4_0_ref), whose bytes these are.
#ifndef KVASIR_TENSOR_QUANTISE_H_
#define KVASIR_TENSOR_QUANTISE_H_

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace kvasir::tensor {

// Blocks of 32 numbers x share a scale d, kept as f16 (to nearest even); q is found with the f32
// reciprocal r = 1 / d of the scale before that rounding, 0 where d is 0 or r is not finite.
//   Q8_0: d = max|x| / 127; q = x · r to the nearest integer, ties away from zero.
//   Q4_0: d = m / −8, m the first x of the largest magnitude, with its sign; q + 8 = x · r + 8.5 in
//         f32 without its fraction, at most 15. Ties thus go up.
// Requires dtype kQ8_0 or kQ4_0, whole blocks, finite values, and out.size() == BytesOf(dtype,
// values.size()). A scale too large for f16 becomes infinity: the caller must look.
void Quantise(DType dtype, std::span<const float> values, std::span<std::byte> out);

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_QUANTISE_H_
