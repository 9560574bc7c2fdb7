// Walks untrusted little-endian bytes from front to back. Nothing is read past the end, and every
// Error names the file and the offset.
#ifndef KVASIR_FORMATS_BYTE_CURSOR_H_
#define KVASIR_FORMATS_BYTE_CURSOR_H_

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace kvasir::formats {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

// "model.gguf: <what is wrong> (byte 24)", as kBadData.
template <typename... Args>
base::Error BadFile(std::string_view file, std::uint64_t offset, fmt::format_string<Args...> format,
                    Args&&... args) {
  return base::MakeError(base::ErrorCode::kBadData, "{}: {} (byte {})", file,
                         fmt::format(format, std::forward<Args>(args)...), offset);
}

// Owns nothing: bytes and file name must outlive it. Single-threaded.
// Invariant: offset() <= size of bytes.
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return bytes_.size() - offset_; }
  std::string_view file() const { return file_; }

  // The next `count` bytes; an Error that names `what` if the file ends before.
  base::Result<std::span<const std::byte>> Take(std::uint64_t count, std::string_view what) {
    if (count > left()) {
      return BadFile(file_, offset_, "{} takes {} bytes, but {} are left in the file", what, count,
                     left());
    }
    const auto taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
  }

  template <typename T>
  base::Result<T> Read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    KV_TRY(const auto raw, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  // A GGUF string: its length as u64, then that many bytes.
  base::Result<std::string_view> ReadString(std::string_view what) {
    KV_TRY(const auto length, Read<std::uint64_t>(what));
    KV_TRY(const auto raw, Take(length, what));
    return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::uint64_t offset_ = 0;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_BYTE_CURSOR_H_
