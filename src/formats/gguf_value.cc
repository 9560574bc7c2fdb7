#include "formats/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

template <typename T>
T Load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  return value;
}

struct Integer {
  bool negative;
  std::uint64_t bits;  // Two's complement.
};

template <typename T>
Integer LoadInteger(const std::byte* source) {
  const T value = Load<T>(source);
  return {value < T{0}, static_cast<std::uint64_t>(value)};
}

std::optional<Integer> DecodeInteger(GgufValueType type, const std::byte* source) {
  switch (type) {
    case GgufValueType::kUint8:
      return LoadInteger<std::uint8_t>(source);
    case GgufValueType::kInt8:
      return LoadInteger<std::int8_t>(source);
    case GgufValueType::kUint16:
      return LoadInteger<std::uint16_t>(source);
    case GgufValueType::kInt16:
      return LoadInteger<std::int16_t>(source);
    case GgufValueType::kUint32:
      return LoadInteger<std::uint32_t>(source);
    case GgufValueType::kInt32:
      return LoadInteger<std::int32_t>(source);
    case GgufValueType::kUint64:
      return LoadInteger<std::uint64_t>(source);
    case GgufValueType::kInt64:
      return LoadInteger<std::int64_t>(source);
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> DecodeInt64(GgufValueType type, const std::byte* source) {
  const auto integer = DecodeInteger(type, source);
  if (!integer) return std::nullopt;
  if (!integer->negative && integer->bits > std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(integer->bits);
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Splits off the first string of an array's bytes.
std::string_view NextString(std::span<const std::byte>& rest) {
  KV_DCHECK(rest.size() >= 8);
  const auto length = Load<std::uint64_t>(rest.data());
  KV_DCHECK(length <= rest.size() - 8);
  const std::string_view text = AsText(rest.subspan(8, length));
  rest = rest.subspan(8 + length);
  return text;
}

std::string ScalarText(GgufValueType type, const std::byte* source) {
  if (const auto integer = DecodeInteger(type, source)) {
    return integer->negative ? fmt::format("{}", static_cast<std::int64_t>(integer->bits))
                             : fmt::format("{}", integer->bits);
  }
  if (type == GgufValueType::kFloat32) return fmt::format("{}", Load<float>(source));
  if (type == GgufValueType::kFloat64) return fmt::format("{}", Load<double>(source));
  return Load<std::uint8_t>(source) != 0 ? "true" : "false";
}

constexpr std::uint64_t kElementsShown = 8;
constexpr std::size_t kElementCharacters = 24;

}  // namespace

std::string_view GgufValueTypeName(GgufValueType type) {
  static constexpr std::array<std::string_view, kGgufValueTypeCount> kNames = {
      "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
      "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::size_t GgufScalarBytes(GgufValueType type) {
  static constexpr std::array<std::uint8_t, kGgufValueTypeCount> kBytes = {1, 1, 2, 2, 4, 4, 4,
                                                                           1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

std::optional<std::uint64_t> GgufValue::AsUint() const {
  const auto integer = DecodeInteger(type, bytes.data());
  if (!integer || integer->negative) return std::nullopt;
  return integer->bits;
}

std::optional<std::int64_t> GgufValue::AsInt() const { return DecodeInt64(type, bytes.data()); }

std::optional<double> GgufValue::AsFloat() const {
  if (type == GgufValueType::kFloat32) return Load<float>(bytes.data());
  if (type == GgufValueType::kFloat64) return Load<double>(bytes.data());
  return std::nullopt;
}

std::optional<bool> GgufValue::AsBool() const {
  if (type != GgufValueType::kBool) return std::nullopt;
  return Load<std::uint8_t>(bytes.data()) != 0;
}

std::optional<std::string_view> GgufValue::AsString() const {
  if (type != GgufValueType::kString) return std::nullopt;
  return AsText(bytes);
}

std::optional<std::vector<std::string_view>> GgufValue::AsStringArray() const {
  if (!is_array() || element_type != GgufValueType::kString) return std::nullopt;
  std::vector<std::string_view> strings;
  strings.reserve(count);
  auto rest = bytes;
  for (std::uint64_t i = 0; i < count; ++i) strings.push_back(NextString(rest));
  return strings;
}

std::optional<std::vector<float>> GgufValue::AsFloatArray() const {
  if (!is_array() || element_type != GgufValueType::kFloat32) return std::nullopt;
  std::vector<float> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::optional<std::vector<std::int64_t>> GgufValue::AsIntArray() const {
  if (!is_array()) return std::nullopt;
  const std::size_t step = GgufScalarBytes(element_type);
  // Also when it is empty, an array of strings is no array of integers.
  static constexpr std::byte kZero[8] = {};
  if (!DecodeInteger(element_type, kZero)) return std::nullopt;
  std::vector<std::int64_t> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto value = DecodeInt64(element_type, bytes.data() + i * step);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<bool>> GgufValue::AsBoolArray() const {
  if (!is_array() || element_type != GgufValueType::kBool) return std::nullopt;
  std::vector<bool> values;
  values.reserve(count);
  for (const std::byte byte : bytes) values.push_back(byte != std::byte{0});
  return values;
}

std::string GgufValue::TypeText() const {
  if (!is_array()) return std::string(GgufValueTypeName(type));
  return fmt::format("array of {} {}", count, GgufValueTypeName(element_type));
}

std::string GgufValue::ValueText() const {
  if (type == GgufValueType::kString) return Quoted(AsText(bytes), '"');
  if (!is_array()) return ScalarText(type, bytes.data());
  std::string text = "[";
  auto rest = bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    if (i == kElementsShown) {
      text += fmt::format("… {} more", count - i);
      break;
    }
    if (element_type == GgufValueType::kString) {
      text += Quoted(NextString(rest), '"', kElementCharacters);
    } else {
      text += ScalarText(element_type, bytes.data() + i * GgufScalarBytes(element_type));
    }
  }
  return text + "]";
}

}  // namespace kvasir::formats
