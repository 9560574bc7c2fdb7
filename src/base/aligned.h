// A fixed-size array aligned to a cache line, for everything SIMD kernels touch.
#ifndef KVASIR_BASE_ALIGNED_H_
#define KVASIR_BASE_ALIGNED_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace kvasir::base {

inline constexpr std::size_t kAlignment = 64;  // bytes: a cache line, an AVX-512 vector

// Owner: whoever holds it; move-only; thread-compatible. Elements start as zero bytes. Like a
// std::vector it throws std::bad_alloc when there is no memory, which the program reports.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t count) : size_(count) {
    if (count == 0) return;
    if (count > (SIZE_MAX - kAlignment) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data_.get(), size_}; }
  std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace kvasir::base

#endif  // KVASIR_BASE_ALIGNED_H_
