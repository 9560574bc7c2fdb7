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

// A value of this type is always one that FindGgufType knows. The three named here are those
// Kvasir computes with; the others are only recognised.
enum class GgufType : std::uint32_t { kF32 = 0, kF16 = 1, kBF16 = 30 };

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
constexpr std::optional<tensor::DType> ToDType(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return tensor::DType::kF32;
    case GgufType::kF16:
      return tensor::DType::kF16;
    case GgufType::kBF16:
      return tensor::DType::kBF16;
  }
  return std::nullopt;
}

constexpr GgufType ToGgufType(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kF32:
      return GgufType::kF32;
    case tensor::DType::kF16:
      return GgufType::kF16;
    case tensor::DType::kBF16:
      return GgufType::kBF16;
  }
  return GgufType::kF32;
}

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_TYPE_H_
