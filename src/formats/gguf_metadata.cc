#include "formats/gguf_metadata.h"

#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::Result;

// Length of the key (8), a key of one byte, the type (4), a value of one byte.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;

// A hostile count is bounded by the file's size before anything is allocated; so is the memory.
static_assert(sizeof(GgufEntry) + sizeof(std::size_t) <= 5 * kMinEntryBytes);

// What a getter of this C++ type takes, for messages.
template <typename T>
constexpr std::string_view kWanted;
template <>
constexpr std::string_view kWanted<std::uint64_t> = "an integer >= 0";
template <>
constexpr std::string_view kWanted<std::int64_t> = "an integer below 2^63";
template <>
constexpr std::string_view kWanted<double> = "a float";
template <>
constexpr std::string_view kWanted<bool> = "a bool";
template <>
constexpr std::string_view kWanted<std::string_view> = "a string";
template <>
constexpr std::string_view kWanted<std::vector<std::string_view>> = "an array of strings";
template <>
constexpr std::string_view kWanted<std::vector<float>> = "an array of float32";
template <>
constexpr std::string_view kWanted<std::vector<std::int64_t>> = "an array of integers below 2^63";

std::uint64_t MinValueBytes(GgufValueType type) {
  return type == GgufValueType::kString ? 8 : GgufScalarBytes(type);
}

Result<GgufValueType> ReadType(ByteCursor& in, std::string_view key, std::string_view what) {
  const std::uint64_t at = in.offset();
  KV_TRY(const auto number, in.Read<std::uint32_t>(what));
  if (number >= kGgufValueTypeCount) {
    return BadFile(in.file(), at, "metadata {} has {} {}, known are 0 to {}", Quoted(key), what,
                   number, kGgufValueTypeCount - 1);
  }
  return static_cast<GgufValueType>(number);
}

Result<void> CheckBools(const ByteCursor& in, std::string_view key,
                        std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > std::byte{1}) {
      return BadFile(in.file(), in.offset() - bytes.size() + i,
                     "metadata {} has the bool {}, must be 0 or 1", Quoted(key),
                     static_cast<unsigned>(bytes[i]));
    }
  }
  return base::Success();
}

Result<GgufValue> ReadArray(ByteCursor& in, std::string_view key) {
  GgufValue value;
  value.type = GgufValueType::kArray;
  KV_TRY(value.element_type, ReadType(in, key, "array element type"));
  if (value.element_type == GgufValueType::kArray) {
    return BadFile(in.file(), in.offset() - 4,
                   "metadata {} is an array of arrays, allowed are arrays of numbers, bools or "
                   "strings",
                   Quoted(key));
  }
  KV_TRY(value.count, in.Read<std::uint64_t>("array length"));
  if (value.count > in.left() / MinValueBytes(value.element_type)) {
    return BadFile(in.file(), in.offset() - 8,
                   "metadata {} is an array of {} {}, but {} bytes are left in the file",
                   Quoted(key), value.count, GgufValueTypeName(value.element_type), in.left());
  }
  if (value.element_type != GgufValueType::kString) {
    KV_TRY(value.bytes, in.Take(value.count * GgufScalarBytes(value.element_type), "array"));
    if (value.element_type == GgufValueType::kBool) {
      KV_TRY(CheckBools(in, key, value.bytes));
    }
    return value;
  }
  ByteCursor strings = in;  // Walked once to find the end.
  for (std::uint64_t i = 0; i < value.count; ++i) {
    KV_TRY(strings.ReadString("array string"));
  }
  KV_TRY(value.bytes, in.Take(strings.offset() - in.offset(), "array"));
  return value;
}

Result<GgufValue> ReadValue(ByteCursor& in, std::string_view key) {
  GgufValue value;
  KV_TRY(value.type, ReadType(in, key, "value type"));
  value.element_type = value.type;
  if (value.is_array()) return ReadArray(in, key);
  if (value.type == GgufValueType::kString) {
    KV_TRY(const auto text, in.ReadString("metadata string"));
    value.bytes = std::as_bytes(std::span(text.data(), text.size()));
    return value;
  }
  KV_TRY(value.bytes, in.Take(GgufScalarBytes(value.type), "metadata value"));
  if (value.type == GgufValueType::kBool) {
    KV_TRY(CheckBools(in, key, value.bytes));
  }
  return value;
}

}  // namespace

Result<void> CheckGgufName(std::string_view file, std::uint64_t offset, std::string_view what,
                           std::string_view name, std::size_t max_bytes) {
  if (name.empty() || name.size() > max_bytes) {
    return BadFile(file, offset, "{} {} is {} bytes long, allowed are 1 to {}", what, Quoted(name),
                   name.size(), max_bytes);
  }
  if (const auto at = base::FirstInvalidUtf8(name)) {
    return BadFile(file, offset + *at, "{} {} must be UTF-8", what, Quoted(name));
  }
  if (const auto at = name.find('\0'); at != std::string_view::npos) {
    return BadFile(file, offset + at, "{} {} holds a NUL byte, which is not allowed", what,
                   Quoted(name));
  }
  return base::Success();
}

Result<GgufMetadata> GgufMetadata::Read(ByteCursor& in, std::uint64_t count) {
  GgufMetadata metadata;
  metadata.file_ = in.file();
  if (count > in.left() / kMinEntryBytes) {
    return BadFile(in.file(), in.offset(),
                   "{} metadata entries are announced, but {} bytes are left in the file", count,
                   in.left());
  }
  metadata.entries_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    KV_TRY(const auto key, in.ReadString("metadata key"));
    KV_TRY(
        CheckGgufName(in.file(), in.offset() - key.size(), "metadata key", key, kGgufMaxKeyBytes));
    KV_TRY(const auto value, ReadValue(in, key));
    metadata.entries_.push_back({key, value});
  }
  // Sorting finds a second key in n log n whatever the keys are: no hash to attack.
  auto& order = metadata.by_key_;
  const auto& entries = metadata.entries_;
  order.resize(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return entries[a].key != entries[b].key ? entries[a].key < entries[b].key : a < b;
  });
  const auto twice = std::adjacent_find(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return entries[a].key == entries[b].key; });
  if (twice != order.end()) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "{}: metadata key {} stands twice (entries {} and {}), keys must be "
                           "unique",
                           in.file(), Quoted(entries[*twice].key), *twice, *(twice + 1));
  }
  return metadata;
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto found =
      std::lower_bound(by_key_.begin(), by_key_.end(), key,
                       [&](std::size_t i, std::string_view k) { return entries_[i].key < k; });
  if (found == by_key_.end() || entries_[*found].key != key) return nullptr;
  return &entries_[*found].value;
}

template <typename T>
Result<std::optional<T>> GgufMetadata::Optional(std::string_view key,
                                                std::optional<T> (GgufValue::*as)() const) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<T>();
  std::optional<T> converted = (value->*as)();
  if (!converted) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: metadata {} is {} {}, must be {}", file_,
                           Quoted(key), value->TypeText(), value->ValueText(), kWanted<T>);
  }
  return converted;
}

template <typename T>
Result<T> GgufMetadata::Get(std::string_view key, std::optional<T> (GgufValue::*as)() const) const {
  KV_TRY(std::optional<T> value, Optional(key, as));
  if (!value) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: metadata {} is missing, must be {}",
                           file_, Quoted(key), kWanted<T>);
  }
  return *std::move(value);
}

Result<std::uint64_t> GgufMetadata::GetUint(std::string_view key) const {
  return Get(key, &GgufValue::AsUint);
}
Result<std::int64_t> GgufMetadata::GetInt(std::string_view key) const {
  return Get(key, &GgufValue::AsInt);
}
Result<double> GgufMetadata::GetFloat(std::string_view key) const {
  return Get(key, &GgufValue::AsFloat);
}
Result<bool> GgufMetadata::GetBool(std::string_view key) const {
  return Get(key, &GgufValue::AsBool);
}
Result<std::string_view> GgufMetadata::GetString(std::string_view key) const {
  return Get(key, &GgufValue::AsString);
}
Result<std::vector<std::string_view>> GgufMetadata::GetStringArray(std::string_view key) const {
  return Get(key, &GgufValue::AsStringArray);
}
Result<std::vector<float>> GgufMetadata::GetFloatArray(std::string_view key) const {
  return Get(key, &GgufValue::AsFloatArray);
}
Result<std::vector<std::int64_t>> GgufMetadata::GetIntArray(std::string_view key) const {
  return Get(key, &GgufValue::AsIntArray);
}

Result<std::optional<std::uint64_t>> GgufMetadata::OptionalUint(std::string_view key) const {
  return Optional(key, &GgufValue::AsUint);
}
Result<std::optional<std::int64_t>> GgufMetadata::OptionalInt(std::string_view key) const {
  return Optional(key, &GgufValue::AsInt);
}
Result<std::optional<double>> GgufMetadata::OptionalFloat(std::string_view key) const {
  return Optional(key, &GgufValue::AsFloat);
}
Result<std::optional<bool>> GgufMetadata::OptionalBool(std::string_view key) const {
  return Optional(key, &GgufValue::AsBool);
}
Result<std::optional<std::string_view>> GgufMetadata::OptionalString(std::string_view key) const {
  return Optional(key, &GgufValue::AsString);
}
Result<std::optional<std::vector<std::string_view>>> GgufMetadata::OptionalStringArray(
    std::string_view key) const {
  return Optional(key, &GgufValue::AsStringArray);
}
Result<std::optional<std::vector<float>>> GgufMetadata::OptionalFloatArray(
    std::string_view key) const {
  return Optional(key, &GgufValue::AsFloatArray);
}
Result<std::optional<std::vector<std::int64_t>>> GgufMetadata::OptionalIntArray(
    std::string_view key) const {
  return Optional(key, &GgufValue::AsIntArray);
}

}  // namespace kvasir::formats
