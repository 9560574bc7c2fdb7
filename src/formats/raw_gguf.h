// For tests: GGUF bytes written field by field, so that they can be wrong in any way.
#ifndef KVASIR_FORMATS_RAW_GGUF_H_
#define KVASIR_FORMATS_RAW_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/gguf_value.h"

namespace kvasir::formats {

class RawGguf {
 public:
  RawGguf() = default;
  // Magic, version and counts.
  RawGguf(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    Text("GGUF").Number(version).Number(tensors).Number(entries);
  }
  static RawGguf FromHex(std::string_view hex) {
    KV_CHECK(hex.size() % 2 == 0);
    RawGguf raw;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      const std::string pair(hex.substr(i, 2));
      raw.bytes_.push_back(static_cast<std::byte>(std::stoi(pair, nullptr, 16)));
    }
    return raw;
  }

  template <typename T>
  RawGguf& Number(T value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    return *this;
  }
  RawGguf& Text(std::string_view text) {
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    return *this;
  }
  RawGguf& String(std::string_view text) { return Number<std::uint64_t>(text.size()).Text(text); }
  RawGguf& Key(std::string_view key, GgufValueType type) { return String(key).Type(type); }
  RawGguf& Type(GgufValueType type) { return Number(static_cast<std::uint32_t>(type)); }
  // dims as in the file, fastest-varying first.
  RawGguf& Tensor(std::string_view name, std::initializer_list<std::uint64_t> dims,
                  std::uint32_t type, std::uint64_t offset) {
    String(name).Number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) Number(dim);
    return Number(type).Number(offset);
  }
  RawGguf& Zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  RawGguf& PadTo(std::size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_RAW_GGUF_H_
