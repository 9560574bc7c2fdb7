// Element types of tensors in GGUF files, by their numbers on disk.
//
// Source: the ggml project's type list and block structures (ggml.h, ggml-common.h).
#ifndef KVASIR_FORMATS_GGUF_TYPE_H_
#define KVASIR_FORMATS_GGUF_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace kvasir::formats {

// A value of this type is always one that FindGgufType knows. Those named here are those whose
// numbers Kvasir reads; the others are only recognised.
enum class GgufType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

// Elements are stored in blocks along the fastest-varying dimension.
struct GgufTypeInfo {
  GgufType type;
  std::string_view name;         // "f32", "Q4_K"
  std::uint64_t block_elements;  // 1 for plain numbers
  std::uint64_t block_bytes;
};

// The type with this number on disk, or null if there is none (withdrawn numbers included).
const GgufTypeInfo* FindGgufType(std::uint32_t number);

// Requires a type that FindGgufType gave.
const GgufTypeInfo& InfoOf(GgufType type);

// Nothing for a type that is only recognised.
std::optional<tensor::DType> ToDType(GgufType type);
GgufType ToGgufType(tensor::DType dtype);

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_TYPE_H_
