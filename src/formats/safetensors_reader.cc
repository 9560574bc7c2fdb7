#include "formats/safetensors_reader.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "formats/byte_cursor.h"
#include "formats/json_document.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::size_t kMaxNameBytes = 65535;

struct Type {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<tensor::DType> dtype = {};
};
constexpr std::array<Type, 16> kTypes = {{{"F32", 4, tensor::DType::kF32},
                                          {"F16", 2, tensor::DType::kF16},
                                          {"BF16", 2, tensor::DType::kBF16},
                                          {"F64", 8},
                                          {"F8_E4M3", 1},
                                          {"F8_E5M2", 1},
                                          {"F8_E8M0", 1},
                                          {"BOOL", 1},
                                          {"I8", 1},
                                          {"U8", 1},
                                          {"I16", 2},
                                          {"U16", 2},
                                          {"I32", 4},
                                          {"U32", 4},
                                          {"I64", 8},
                                          {"U64", 8}}};

// What the header says of one tensor.
class TensorEntry {
 public:
  TensorEntry(std::string_view file, const JsonItem& item) : file_(file), item_(item) {}

  Result<SafetensorsTensor> Read(std::span<const std::byte> data) const {
    SafetensorsTensor tensor;
    tensor.name = item_.key;
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes ||
        tensor.name.find('\0') != std::string::npos) {
      return Wrong("its name has {} bytes; allowed are 1 to {}, none of them NUL",
                   tensor.name.size(), kMaxNameBytes);
    }
    if (!item_.value.is_object()) return Wrong("it is {}, not an object", item_.value.Text());
    for (const JsonItem& field : item_.value.items()) {
      if (field.key == "dtype" || field.key == "shape" || field.key == "data_offsets") continue;
      return Wrong("{} is no field of a tensor; they are dtype, shape, data_offsets",
                   Quoted(field.key));
    }
    KV_TRY(const Type* type, ReadType());
    tensor.type = type->name;
    tensor.dtype = type->dtype;
    KV_TRY(tensor.shape, ReadShape());
    KV_TRY(tensor.data, ReadPlace(*type, tensor.shape, data));
    return tensor;
  }

 private:
  template <typename... Args>
  base::Error Wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return MakeError(ErrorCode::kBadData, "{}: tensor {}: {}", file_, Quoted(item_.key),
                     fmt::format(format, std::forward<Args>(args)...));
  }
  // Up to `most` whole numbers.
  Result<std::vector<std::uint64_t>> ReadNumbers(std::string_view field, std::size_t least,
                                                 std::size_t most) const {
    const auto node = item_.value.Find(field);
    if (!node) return Wrong("{} is missing", field);
    std::vector<std::uint64_t> numbers;
    for (const JsonItem& item : node->items()) {
      const auto number = item.value.AsUint();
      if (!number) return Wrong("{} holds {}, which is no size", field, item.value.Text());
      numbers.push_back(*number);
      if (numbers.size() > most) break;
    }
    if (!node->is_array() || numbers.size() < least || numbers.size() > most) {
      return Wrong("{} must be an array of {} to {} whole numbers", field, least, most);
    }
    return numbers;
  }
  Result<const Type*> ReadType() const {
    const auto node = item_.value.Find("dtype");
    if (!node) return Wrong("dtype is missing");
    const auto name = node->AsString();
    for (const Type& type : kTypes) {
      if (name == type.name) return &type;
    }
    return Wrong("dtype is {}, which is not known", node->Text());
  }
  Result<tensor::Shape> ReadShape() const {
    KV_TRY(const auto dims, ReadNumbers("shape", 0, tensor::Shape::kMaxRank));
    return tensor::Shape(dims);
  }
  Result<std::span<const std::byte>> ReadPlace(const Type& type, const tensor::Shape& shape,
                                               std::span<const std::byte> data) const {
    KV_TRY(const auto place, ReadNumbers("data_offsets", 2, 2));
    if (place[0] > place[1] || place[1] > data.size()) {
      return Wrong("data_offsets are {} to {}; the file holds {} bytes of tensors", place[0],
                   place[1], data.size());
    }
    const auto elements = shape.ElementCount();
    const auto bytes = elements ? base::CheckedMul(*elements, type.bytes) : std::nullopt;
    if (bytes != place[1] - place[0]) {
      return Wrong("shape {} of {} does not take the {} bytes that data_offsets give it",
                   shape.ToString(), type.name, place[1] - place[0]);
    }
    return data.subspan(place[0], place[1] - place[0]);
  }

  std::string_view file_;
  JsonItem item_;
};

Result<std::string_view> ReadHeader(ByteCursor& in) {
  if (in.left() == 0) {
    return MakeError(ErrorCode::kBadData, "{}: the file is empty, must be a safetensors file",
                     in.file());
  }
  KV_TRY(const auto length, in.Read<std::uint64_t>("the length of the header"));
  if (length > in.left()) {
    const std::uint64_t swapped = __builtin_bswap64(length);
    if (swapped > 0 && swapped <= in.left()) {
      return BadFile(in.file(), 0,
                     "the header's length, {}, is big-endian; only little-endian "
                     "is read",
                     swapped);
    }
    return BadFile(in.file(), 0, "the header takes {} bytes, but {} are left in the file", length,
                   in.left());
  }
  if (length < 2 || length > kSafetensorsMaxHeaderBytes) {
    return BadFile(in.file(), 0, "the header takes {} bytes; allowed are 2 to {}", length,
                   kSafetensorsMaxHeaderBytes);
  }
  KV_TRY(const auto header, in.Take(length, "the header"));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (text.front() != '{') {
    return BadFile(in.file(), 8, "the header begins with {}; a safetensors file's with '{{'",
                   Quoted(text.substr(0, 1)));
  }
  return text;
}

// __metadata__ may say anything, as long as it is text.
Result<void> CheckMetadata(std::string_view file, const JsonNode& metadata) {
  bool text = metadata.is_object();
  for (const JsonItem& item : metadata.items()) text = text && item.value.is_string();
  if (text) return base::Success();
  return MakeError(ErrorCode::kBadData, "{}: __metadata__ must be an object of strings", file);
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(base::Env& env, const std::string& path) {
  KV_TRY(auto mapping, env.Map(path));
  KV_TRY(auto file, Parse(mapping->bytes(), path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes, std::string name) {
  SafetensorsFile file;
  file.name_ = std::move(name);
  ByteCursor in(bytes, file.name_);
  KV_TRY(const auto header, ReadHeader(in));
  const auto data = bytes.subspan(in.offset());
  KV_TRY(file.ReadTensors(header, data));
  KV_TRY(file.CheckPlaces(data));
  file.IndexNames();
  return file;
}

Result<void> SafetensorsFile::ReadTensors(std::string_view header,
                                          std::span<const std::byte> data) {
  KV_TRY(const auto json, JsonDocument::Parse(header, name_));
  for (const JsonItem& item : json.root().items()) {
    if (item.key == "__metadata__") {
      KV_TRY(CheckMetadata(name_, item.value));
      continue;
    }
    KV_TRY(auto tensor, TensorEntry(name_, item).Read(data));
    tensors_.push_back(std::move(tensor));
  }
  std::stable_sort(
      tensors_.begin(), tensors_.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
        return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
      });
  return base::Success();
}

Result<void> SafetensorsFile::CheckPlaces(std::span<const std::byte> data) const {
  std::size_t next = 0;  // Where the last tensor ends.
  for (const SafetensorsTensor& tensor : tensors_) {
    const auto begin = static_cast<std::size_t>(tensor.data.data() - data.data());
    if (begin != next) {
      return MakeError(ErrorCode::kBadData,
                       "{}: tensor {} begins at byte {} of the data; the one before ends at {}",
                       name_, Quoted(tensor.name), begin, next);
    }
    next += tensor.data.size();
  }
  if (next == data.size()) return base::Success();
  return MakeError(ErrorCode::kBadData, "{}: {} bytes follow the last tensor; none may", name_,
                   data.size() - next);
}

void SafetensorsFile::IndexNames() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
}

const SafetensorsTensor* SafetensorsFile::Find(std::string_view tensor_name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), tensor_name,
      [this](std::size_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != tensor_name) return nullptr;
  return &tensors_[*found];
}

}  // namespace kvasir::formats
