// Element types of tensors in memory and in files.
#ifndef KVASIR_TENSOR_DTYPE_H_
#define KVASIR_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::tensor {

enum class DType : std::uint8_t { kF32, kF16, kBF16 };

constexpr std::size_t BytesPerElement(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

constexpr std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
  }
  return "?";
}

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_DTYPE_H_
