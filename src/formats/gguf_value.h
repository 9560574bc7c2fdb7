// One metadata value of a GGUF file, still in the file's bytes: decoded when asked.
//
// Source: the GGUF specification of the ggml project (docs/gguf.md), metadata value types.
#ifndef KVASIR_FORMATS_GGUF_VALUE_H_
#define KVASIR_FORMATS_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::formats {

// The numbers are those on disk.
enum class GgufValueType : std::uint8_t {
  kUint8 = 0,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};
inline constexpr std::uint32_t kGgufValueTypeCount = 13;

std::string_view GgufValueTypeName(GgufValueType type);  // "uint32"

// Bytes of one number or bool; 0 for kString and kArray, whose size varies.
std::size_t GgufScalarBytes(GgufValueType type);

// A view, valid as long as the file's bytes. Thread-safe.
// Invariants, kept by whoever reads it from a file: `bytes` is exactly one scalar, or the
// characters of one string, or the elements of an array (strings with their lengths); every bool
// is 0 or 1; an array is never nested.
struct GgufValue {
  std::span<const std::byte> bytes;
  std::uint64_t count = 1;  // Elements of an array; else 1.
  GgufValueType type = GgufValueType::kUint8;
  GgufValueType element_type = GgufValueType::kUint8;  // Of an array; else the same as type.

  bool is_array() const { return type == GgufValueType::kArray; }

  // The value as this C++ type, or nothing if it is of another kind or does not fit.
  std::optional<std::uint64_t> AsUint() const;  // Any integer type, value >= 0.
  std::optional<std::int64_t> AsInt() const;    // Any integer type, value below 2^63.
  std::optional<double> AsFloat() const;        // float32 or float64; NaN and infinity too.
  std::optional<bool> AsBool() const;
  std::optional<std::string_view> AsString() const;  // Any bytes: not checked for UTF-8.
  std::optional<std::vector<std::string_view>> AsStringArray() const;
  std::optional<std::vector<float>> AsFloatArray() const;       // float32 elements only.
  std::optional<std::vector<std::int64_t>> AsIntArray() const;  // Each as AsInt.
  std::optional<std::vector<bool>> AsBoolArray() const;

  std::string TypeText() const;  // "uint32", "array of 6915 string"
  // On one line, for people: 128 · "gpt2" · ["<unk>", "<s>", … 6913 more]
  std::string ValueText() const;
};

}  // namespace kvasir::formats

#endif  // KVASIR_FORMATS_GGUF_VALUE_H_
