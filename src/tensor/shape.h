// Shape of a tensor: up to four dimensions, slowest-varying first (row-major, as PyTorch and NumPy
// print them). GGUF files list dimensions the other way round; formats/ turns them about.
#ifndef KVASIR_TENSOR_SHAPE_H_
#define KVASIR_TENSOR_SHAPE_H_

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"
#include "base/checked.h"

namespace kvasir::tensor {

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::uint64_t> dims)
      : Shape(std::span<const std::uint64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::uint64_t> dims) : rank_(dims.size()) {
    KV_CHECK(dims.size() <= kMaxRank);
    for (std::size_t i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }

  std::size_t rank() const { return rank_; }
  std::uint64_t operator[](std::size_t i) const { return dims_[i]; }
  std::span<const std::uint64_t> dims() const { return {dims_.data(), rank_}; }

  // Product of the dimensions (1 for rank 0), or nothing beyond 64 bits.
  std::optional<std::uint64_t> ElementCount() const {
    return base::CheckedProduct({dims_[0], dims_[1], dims_[2], dims_[3]});
  }

  // "[6915, 128]"
  std::string ToString() const {
    std::string text = "[";
    for (std::size_t i = 0; i < rank_; ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", dims_[i]);
    }
    return text + "]";
  }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::uint64_t, kMaxRank> dims_ = {1, 1, 1, 1};  // Beyond rank: 1.
  std::size_t rank_ = 0;
};

}  // namespace kvasir::tensor

#endif  // KVASIR_TENSOR_SHAPE_H_
