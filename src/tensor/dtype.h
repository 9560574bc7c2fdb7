// Element types of tensors in memory and in files.
#ifndef KVASIR_TENSOR_DTYPE_H_
#define KVASIR_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::tensor {

// After kBF16: GGUF's block types, numbers of a few bits with common scales (quantise.h and
// dequantise.h).
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

// Elements lie in blocks along the fastest-varying dimension.
struct DTypeInfo {
  std::string_view name;       // As GGUF files are described: "f32", "Q4_K".
  std::size_t block_elements;  // 1 for plain numbers.
  std::size_t block_bytes;
};

// Block bytes are scales + minima + packed numbers.
inline constexpr DTypeInfo kDTypes[] = {
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"Q8_0", 32, 2 + 32},
    {"Q4_0", 32, 2 + 16},
    {"Q4_1", 32, 2 + 2 + 16},
    {"Q5_0", 32, 2 + 4 + 16},
    {"Q5_1", 32, 2 + 2 + 4 + 16},
    {"Q2_K", 256, 2 + 2 + 16 + 64},
    {"Q3_K", 256, 2 + 12 + 32 + 64},
    {"Q4_K", 256, 2 + 2 + 12 + 128},
    {"Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {"Q6_K", 256, 2 + 16 + 64 + 128},
};

constexpr const DTypeInfo& InfoOf(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }
constexpr std::size_t BlockElements(DType dtype) { return InfoOf(dtype).block_elements; }
constexpr std::size_t BlockBytes(DType dtype) { return InfoOf(dtype).block_bytes; }

// Requires a type without blocks.
constexpr std::size_t BytesPerElement(DType dtype) { return BlockBytes(dtype); }

// Requires whole blocks.
constexpr std::size_t BytesOf(DType dtype, std::size_t elements) {
  return elements / BlockElements(dtype) * BlockBytes(dtype);
}

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_DTYPE_H_
