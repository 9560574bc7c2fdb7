#include "formats/gguf_type.h"

#include <iterator>

#include "base/check.h"

namespace kvasir::formats {
namespace {

constexpr GgufTypeInfo Row(std::uint32_t number, std::string_view name,
                           std::uint64_t block_elements, std::uint64_t block_bytes) {
  return {static_cast<GgufType>(number), name, block_elements, block_bytes};
}

// Block bytes are scales + minima + packed quants. Numbers that are missing were withdrawn.
constexpr GgufTypeInfo kTypes[] = {
    Row(0, "f32", 1, 4),
    Row(1, "f16", 1, 2),
    Row(2, "Q4_0", 32, 2 + 16),
    Row(3, "Q4_1", 32, 2 + 2 + 16),
    Row(6, "Q5_0", 32, 2 + 4 + 16),
    Row(7, "Q5_1", 32, 2 + 2 + 4 + 16),
    Row(8, "Q8_0", 32, 2 + 32),
    Row(9, "Q8_1", 32, 2 + 2 + 32),
    Row(10, "Q2_K", 256, 2 + 2 + 16 + 64),
    Row(11, "Q3_K", 256, 2 + 12 + 32 + 64),
    Row(12, "Q4_K", 256, 2 + 2 + 12 + 128),
    Row(13, "Q5_K", 256, 2 + 2 + 12 + 32 + 128),
    Row(14, "Q6_K", 256, 2 + 16 + 64 + 128),
    Row(15, "Q8_K", 256, 4 + 32 + 256),
    Row(16, "IQ2_XXS", 256, 2 + 64),
    Row(17, "IQ2_XS", 256, 2 + 8 + 64),
    Row(18, "IQ3_XXS", 256, 2 + 32 + 64),
    Row(19, "IQ1_S", 256, 2 + 16 + 32),
    Row(20, "IQ4_NL", 32, 2 + 16),
    Row(21, "IQ3_S", 256, 2 + 4 + 8 + 32 + 64),
    Row(22, "IQ2_S", 256, 2 + 8 + 8 + 64),
    Row(23, "IQ4_XS", 256, 2 + 2 + 4 + 128),
    Row(24, "i8", 1, 1),
    Row(25, "i16", 1, 2),
    Row(26, "i32", 1, 4),
    Row(27, "i64", 1, 8),
    Row(28, "f64", 1, 8),
    Row(29, "IQ1_M", 256, 8 + 16 + 32),
    Row(30, "bf16", 1, 2),
    Row(34, "TQ1_0", 256, 2 + 4 + 48),
    Row(35, "TQ2_0", 256, 2 + 64),
    Row(39, "MXFP4", 32, 1 + 16),
    Row(40, "NVFP4", 64, 4 + 32),
    Row(41, "Q1_0", 128, 2 + 16),
};

// By DType.
constexpr GgufType kOfDType[] = {GgufType::kF32,  GgufType::kF16,  GgufType::kBF16, GgufType::kQ8_0,
                                 GgufType::kQ4_0, GgufType::kQ4_1, GgufType::kQ5_0, GgufType::kQ5_1,
                                 GgufType::kQ2_K, GgufType::kQ3_K, GgufType::kQ4_K, GgufType::kQ5_K,
                                 GgufType::kQ6_K};
static_assert(std::size(kOfDType) == std::size(tensor::kDTypes));

}  // namespace

const GgufTypeInfo* FindGgufType(std::uint32_t number) {
  for (const GgufTypeInfo& info : kTypes) {
    if (static_cast<std::uint32_t>(info.type) == number) return &info;
  }
  return nullptr;
}

const GgufTypeInfo& InfoOf(GgufType type) {
  const GgufTypeInfo* info = FindGgufType(static_cast<std::uint32_t>(type));
  KV_CHECK(info != nullptr);
  return *info;
}

std::optional<tensor::DType> ToDType(GgufType type) {
  for (std::size_t i = 0; i < std::size(kOfDType); ++i) {
    if (kOfDType[i] == type) return static_cast<tensor::DType>(i);
  }
  return std::nullopt;
}

GgufType ToGgufType(tensor::DType dtype) { return kOfDType[static_cast<std::size_t>(dtype)]; }

}  // namespace kvasir::formats
