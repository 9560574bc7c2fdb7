#include "formats/gguf_writer.h"

#include <set>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "formats/gguf_reader.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::Result;

void AppendBytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
void AppendNumber(std::vector<std::byte>& out, T value) {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  AppendBytes(out, std::as_bytes(std::span(&value, 1)));
}

void AppendString(std::vector<std::byte>& out, std::string_view text) {
  AppendNumber<std::uint64_t>(out, text.size());
  AppendBytes(out, std::as_bytes(std::span(text.data(), text.size())));
}

void AppendType(std::vector<std::byte>& out, GgufValueType type) {
  AppendNumber(out, static_cast<std::uint32_t>(type));
}

void PadToAlignment(std::vector<std::byte>& out) {
  while (out.size() % kGgufDefaultAlignment != 0) out.push_back(std::byte{0});
}

Result<void> CheckWritableName(std::string_view what, std::string_view name,
                               std::size_t max_bytes) {
  auto checked = CheckGgufName("cannot write a GGUF file", 0, what, name, max_bytes);
  if (checked) return checked;
  base::Error error = std::move(checked).error();
  error.code = base::ErrorCode::kUsage;
  return error;
}

}  // namespace

std::vector<std::byte>& GgufWriter::Slot(std::string_view key, GgufValueType type) {
  Entry* slot = nullptr;
  for (Entry& entry : entries_) {
    if (entry.key == key) slot = &entry;
  }
  if (slot == nullptr) slot = &entries_.emplace_back(Entry{std::string(key), {}});
  slot->encoded.clear();
  AppendType(slot->encoded, type);
  return slot->encoded;
}

template <typename T>
void GgufWriter::SetScalar(std::string_view key, GgufValueType type, T value) {
  AppendNumber(Slot(key, type), value);
}

template <typename T>
void GgufWriter::SetArray(std::string_view key, GgufValueType element_type,
                          std::span<const T> values) {
  std::vector<std::byte>& out = Slot(key, GgufValueType::kArray);
  AppendType(out, element_type);
  AppendNumber<std::uint64_t>(out, values.size());
  if constexpr (std::is_arithmetic_v<T>) {
    AppendBytes(out, std::as_bytes(values));
  } else {
    for (const auto& text : values) AppendString(out, text);
  }
}

void GgufWriter::Set(std::string_view key, std::uint32_t value) {
  SetScalar(key, GgufValueType::kUint32, value);
}
void GgufWriter::Set(std::string_view key, std::uint64_t value) {
  SetScalar(key, GgufValueType::kUint64, value);
}
void GgufWriter::Set(std::string_view key, std::int32_t value) {
  SetScalar(key, GgufValueType::kInt32, value);
}
void GgufWriter::Set(std::string_view key, float value) {
  SetScalar(key, GgufValueType::kFloat32, value);
}
void GgufWriter::Set(std::string_view key, bool value) {
  SetScalar<std::uint8_t>(key, GgufValueType::kBool, value ? 1 : 0);
}
void GgufWriter::Set(std::string_view key, std::string_view value) {
  AppendString(Slot(key, GgufValueType::kString), value);
}
void GgufWriter::Set(std::string_view key, std::span<const std::string> values) {
  SetArray(key, GgufValueType::kString, values);
}
void GgufWriter::Set(std::string_view key, std::span<const std::string_view> values) {
  SetArray(key, GgufValueType::kString, values);
}
void GgufWriter::Set(std::string_view key, std::span<const float> values) {
  SetArray(key, GgufValueType::kFloat32, values);
}
void GgufWriter::Set(std::string_view key, std::span<const std::int32_t> values) {
  SetArray(key, GgufValueType::kInt32, values);
}
void GgufWriter::Set(std::string_view key, std::span<const std::uint32_t> values) {
  SetArray(key, GgufValueType::kUint32, values);
}

void GgufWriter::Set(std::string_view key, const std::vector<bool>& values) {
  const std::vector<std::uint8_t> bytes(values.begin(), values.end());
  SetArray(key, GgufValueType::kBool, std::span<const std::uint8_t>(bytes));
}

void GgufWriter::Set(std::string_view key, const GgufValue& value) {
  std::vector<std::byte>& out = Slot(key, value.type);
  if (value.is_array()) AppendType(out, value.element_type);
  if (value.is_array()) AppendNumber<std::uint64_t>(out, value.count);
  if (value.type == GgufValueType::kString) AppendNumber<std::uint64_t>(out, value.bytes.size());
  AppendBytes(out, value.bytes);
}

void GgufWriter::AddTensor(std::string_view name, const tensor::Shape& shape, tensor::DType dtype,
                           std::vector<std::byte> data) {
  tensors_.push_back({std::string(name), shape, dtype, std::move(data), {}});
}

void GgufWriter::AddTensorView(std::string_view name, const tensor::Shape& shape,
                               tensor::DType dtype, std::span<const std::byte> data) {
  tensors_.push_back({std::string(name), shape, dtype, {}, data});
}

Result<void> GgufWriter::Check() const {
  for (const Entry& entry : entries_) {
    KV_TRY(CheckWritableName("metadata key", entry.key, kGgufMaxKeyBytes));
    if (entry.key == "general.alignment") {
      return base::MakeError(base::ErrorCode::kUsage,
                             "metadata 'general.alignment' cannot be set, it is always {}",
                             kGgufDefaultAlignment);
    }
  }
  std::set<std::string_view> names;
  for (const Tensor& tensor : tensors_) {
    KV_TRY(CheckWritableName("tensor name", tensor.name, kGgufMaxTensorNameBytes));
    if (!names.insert(tensor.name).second) {
      return base::MakeError(base::ErrorCode::kUsage,
                             "tensor name {} was added twice, names must be unique",
                             Quoted(tensor.name));
    }
    const auto elements = tensor.shape.ElementCount();
    const std::size_t block = BlockElements(tensor.dtype);
    const auto bytes =
        elements ? base::CheckedMul(*elements / block, BlockBytes(tensor.dtype)) : std::nullopt;
    const bool whole_blocks =
        tensor.shape.rank() > 0 && tensor.shape[tensor.shape.rank() - 1] % block == 0;
    if (!whole_blocks || elements == 0u || bytes != tensor.data().size()) {
      return base::MakeError(
          base::ErrorCode::kUsage,
          "tensor {} of shape {} in {} was given {} bytes, must be those of 1 to {} dimensions, "
          "each at least 1, the last a multiple of {}",
          Quoted(tensor.name), tensor.shape.ToString(), DTypeName(tensor.dtype),
          tensor.data().size(), tensor::Shape::kMaxRank, block);
    }
  }
  return base::Success();
}

Result<std::vector<std::byte>> GgufWriter::Encode() const {
  KV_TRY(Check());
  std::vector<std::byte> out;
  AppendBytes(out, std::as_bytes(std::span("GGUF", 4)));
  AppendNumber<std::uint32_t>(out, 3);
  AppendNumber<std::uint64_t>(out, tensors_.size());
  AppendNumber<std::uint64_t>(out, entries_.size());
  for (const Entry& entry : entries_) {
    AppendString(out, entry.key);
    AppendBytes(out, entry.encoded);
  }
  std::uint64_t offset = 0;  // In the data section, whose tensors all begin and end aligned.
  for (const Tensor& tensor : tensors_) {
    AppendString(out, tensor.name);
    AppendNumber(out, static_cast<std::uint32_t>(tensor.shape.rank()));
    for (std::size_t i = tensor.shape.rank(); i-- > 0;) AppendNumber(out, tensor.shape[i]);
    AppendNumber(out, static_cast<std::uint32_t>(ToGgufType(tensor.dtype)));
    AppendNumber(out, offset);
    offset += *base::CheckedRoundUp(tensor.data().size(), kGgufDefaultAlignment);
  }
  PadToAlignment(out);
  out.reserve(out.size() + offset);
  for (const Tensor& tensor : tensors_) {
    AppendBytes(out, tensor.data());
    PadToAlignment(out);
  }
  return out;
}

Result<void> GgufWriter::Write(base::Env& env, const std::string& path) const {
  KV_TRY(const auto bytes, Encode());
  return base::WriteFileAtomic(env, path, bytes);
}

}  // namespace kvasir::formats
