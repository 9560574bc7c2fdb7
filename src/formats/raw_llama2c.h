// For tests: llama2.c's files as bytes, field by field, so that they can be wrong in any way.
#ifndef KVASIR_FORMATS_RAW_LLAMA2C_H_
#define KVASIR_FORMATS_RAW_LLAMA2C_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/llama2c_model.h"

namespace kvasir::formats {

using RawBytes = std::vector<std::byte>;

template <typename T>
void AppendRaw(RawBytes& bytes, T value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Seven numbers, then `floats` weights: number(0), number(1), …
template <typename Number>
RawBytes RawLlama2cModel(const std::vector<std::int32_t>& header, std::size_t floats,
                         const Number& number) {
  RawBytes bytes;
  for (const std::int32_t value : header) AppendRaw(bytes, value);
  for (std::size_t i = 0; i < floats; ++i) AppendRaw<float>(bytes, number(i));
  return bytes;
}

// Weights that follow the header of such a model.
inline std::size_t Llama2cFloats(const Llama2cConfig& c) {
  const std::size_t layer =
      2 * c.dim + 2 * c.dim * c.dim + 2 * c.kv_dim() * c.dim + 3 * c.hidden_dim * c.dim;
  return c.vocab * c.dim * (c.shared_classifier ? 1 : 2) + c.layers * layer + c.dim +
         c.context * c.head_dim();
}

inline std::vector<std::int32_t> Llama2cHeader(const Llama2cConfig& c) {
  const auto number = [](std::uint64_t value) { return static_cast<std::int32_t>(value); };
  return {number(c.dim),      number(c.hidden_dim),
          number(c.layers),   number(c.heads),
          number(c.kv_heads), c.shared_classifier ? number(c.vocab) : -number(c.vocab),
          number(c.context)};
}

inline RawBytes RawLlama2cTokenizer(std::int32_t longest,
                                    const std::vector<std::pair<std::string_view, float>>& pieces) {
  RawBytes bytes;
  AppendRaw(bytes, longest);
  for (const auto& [piece, score] : pieces) {
    AppendRaw(bytes, score);
    AppendRaw(bytes, static_cast<std::int32_t>(piece.size()));
    for (const char c : piece) bytes.push_back(static_cast<std::byte>(c));
  }
  return bytes;
}

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_RAW_LLAMA2C_H_
