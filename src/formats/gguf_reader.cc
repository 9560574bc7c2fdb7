#include "formats/gguf_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "formats/printable.h"

namespace kvasir::formats {
namespace {

using base::Result;

constexpr std::string_view kMagic = "GGUF";

// Length of the name (8), a name of one byte, the rank (4), one dimension (8), the type (4), the
// offset (8).
constexpr std::uint64_t kMinTensorInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;
// Beside each tensor its offset is held, and an index twice.
static_assert(sizeof(GgufTensor) + 3 * sizeof(std::uint64_t) <= 4 * kMinTensorInfoBytes);

// Bytes of a tensor of this type, its fastest-varying dimension in whole blocks.
Result<std::uint64_t> TensorBytes(std::string_view file, std::uint64_t at,
                                  const GgufTensor& tensor) {
  const GgufTypeInfo& info = InfoOf(tensor.type);
  const std::uint64_t row = tensor.shape[tensor.shape.rank() - 1];
  if (row % info.block_elements != 0) {
    return BadFile(file, at, "tensor {} has {} elements a row, {} needs a multiple of {}",
                   Quoted(tensor.name), row, info.name, info.block_elements);
  }
  const auto elements = tensor.shape.ElementCount();
  const auto bytes =
      elements ? base::CheckedMul(*elements / info.block_elements, info.block_bytes) : std::nullopt;
  if (!bytes) {
    return BadFile(file, at, "tensor {} of shape {} in {} takes more than 2^64 bytes",
                   Quoted(tensor.name), tensor.shape.ToString(), info.name);
  }
  return *bytes;
}

}  // namespace

Result<GgufFile> GgufFile::Open(base::Env& env, const std::string& path) {
  KV_TRY(auto mapping, env.Map(path));
  return Own(std::move(mapping), path);
}

Result<GgufFile> GgufFile::Own(std::unique_ptr<base::FileBytes> bytes, std::string name) {
  KV_TRY(auto file, Parse(bytes->bytes(), std::move(name)));
  file.mapping_ = std::move(bytes);
  return file;
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.bytes_ = bytes;
  file.name_ = std::move(name);
  ByteCursor in(bytes, file.name_);
  KV_TRY(file.ReadHeader(in));
  KV_TRY(file.metadata_, GgufMetadata::Read(in, file.metadata_count_));
  KV_TRY(file.ReadAlignment());
  KV_TRY(file.ReadTensors(in));
  return file;
}

Result<void> GgufFile::ReadHeader(ByteCursor& in) {
  if (bytes_.empty()) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: the file is empty, must be a GGUF file",
                           name_);
  }
  const auto begin = bytes_.first(std::min(bytes_.size(), kMagic.size()));
  const std::string_view magic(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (magic != kMagic) {
    return BadFile(name_, 0, "the file begins with {}, a GGUF file begins with 'GGUF'",
                   Quoted(magic));
  }
  KV_TRY(in.Take(kMagic.size(), "magic"));
  KV_TRY(version_, in.Read<std::uint32_t>("version"));
  const std::uint32_t swapped = __builtin_bswap32(version_);
  if (swapped >= 1 && swapped <= 0xFFFF) {
    return BadFile(name_, 4, "the file is big-endian GGUF version {}, only little-endian is read",
                   swapped);
  }
  if (version_ != 2 && version_ != 3) {
    return BadFile(name_, 4, "GGUF version {} is not supported, supported are 2 and 3", version_);
  }
  KV_TRY(tensor_count_, in.Read<std::uint64_t>("tensor count"));
  KV_TRY(metadata_count_, in.Read<std::uint64_t>("metadata count"));
  if (tensor_count_ > in.left() / kMinTensorInfoBytes) {
    return BadFile(name_, 8, "{} tensors are announced, but {} bytes are left in the file",
                   tensor_count_, in.left());
  }
  return base::Success();
}

Result<void> GgufFile::ReadAlignment() {
  const GgufValue* value = metadata_.Find("general.alignment");
  if (value == nullptr) return base::Success();
  // Other readers take nothing but uint32 here; a file they would read otherwise is refused.
  if (value->type != GgufValueType::kUint32 || !std::has_single_bit(*value->AsUint())) {
    return BadFile(name_, OffsetOf(value->bytes.data()),
                   "metadata 'general.alignment' is {} {}, must be a uint32 power of two",
                   value->TypeText(), value->ValueText());
  }
  alignment_ = *value->AsUint();
  return base::Success();
}

Result<void> GgufFile::ReadTensors(ByteCursor& in) {
  if (tensor_count_ > in.left() / kMinTensorInfoBytes) {
    return BadFile(name_, 8, "{} tensors are announced, but {} bytes are left after the metadata",
                   tensor_count_, in.left());
  }
  tensors_.resize(tensor_count_);
  std::vector<std::uint64_t> offsets(tensor_count_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    KV_TRY(offsets[i], ReadTensorInfo(in, tensors_[i]));
  }
  KV_TRY(IndexNames());
  // Without tensors there is no data section, nor padding before it.
  if (tensors_.empty()) return base::Success();
  const auto data_begin = base::CheckedRoundUp(in.offset(), alignment_);
  if (!data_begin || *data_begin > bytes_.size()) {
    return BadFile(name_, in.offset(),
                   "the file ends at byte {}, before its tensor data (alignment {})", bytes_.size(),
                   alignment_);
  }
  KV_TRY(PlaceTensors(*data_begin, offsets));
  return CheckOverlap();
}

// Fills all but `data`; gives the offset inside the data section.
Result<std::uint64_t> GgufFile::ReadTensorInfo(ByteCursor& in, GgufTensor& tensor) const {
  KV_TRY(tensor.name, in.ReadString("tensor name"));
  KV_TRY(CheckGgufName(name_, in.offset() - tensor.name.size(), "tensor name", tensor.name,
                       kGgufMaxTensorNameBytes));
  KV_TRY(const auto rank, in.Read<std::uint32_t>("tensor rank"));
  if (rank < 1 || rank > tensor::Shape::kMaxRank) {
    return BadFile(name_, in.offset() - 4, "tensor {} has {} dimensions, allowed are 1 to {}",
                   Quoted(tensor.name), rank, tensor::Shape::kMaxRank);
  }
  std::array<std::uint64_t, tensor::Shape::kMaxRank> dims{};
  for (std::size_t i = rank; i-- > 0;) {
    KV_TRY(dims[i], in.Read<std::uint64_t>("tensor dimension"));
    if (dims[i] == 0) {
      return BadFile(name_, in.offset() - 8, "tensor {} has a dimension of 0, must be at least 1",
                     Quoted(tensor.name));
    }
  }
  tensor.shape = tensor::Shape(std::span<const std::uint64_t>(dims.data(), rank));
  KV_TRY(const auto number, in.Read<std::uint32_t>("tensor type"));
  const GgufTypeInfo* info = FindGgufType(number);
  if (info == nullptr) {
    return BadFile(name_, in.offset() - 4,
                   "tensor {} has the unknown type {}, known are 0 to 41 "
                   "without the withdrawn ones",
                   Quoted(tensor.name), number);
  }
  tensor.type = info->type;
  return in.Read<std::uint64_t>("tensor offset");
}

Result<void> GgufFile::PlaceTensors(std::uint64_t data_begin,
                                    std::span<const std::uint64_t> offsets) {
  const auto section = bytes_.subspan(data_begin);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    GgufTensor& tensor = tensors_[i];
    const std::uint64_t at = OffsetOf(tensor.name.data());
    KV_TRY(const auto size, TensorBytes(name_, at, tensor));
    if (offsets[i] % alignment_ != 0) {
      return BadFile(name_, at, "tensor {} has offset {}, must be a multiple of the alignment {}",
                     Quoted(tensor.name), offsets[i], alignment_);
    }
    if (offsets[i] > section.size() || size > section.size() - offsets[i]) {
      return BadFile(name_, at,
                     "tensor {} takes {} bytes at offset {}, but the file's tensor data ends at {}",
                     Quoted(tensor.name), size, offsets[i], section.size());
    }
    tensor.data = section.subspan(offsets[i], size);
  }
  return base::Success();
}

Result<void> GgufFile::CheckOverlap() const {
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].data.data() < tensors_[b].data.data();
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = tensors_[order[i - 1]];
    const GgufTensor& after = tensors_[order[i]];
    if (before.data.data() + before.data.size() > after.data.data()) {
      return BadFile(name_, OffsetOf(after.data.data()),
                     "tensors {} and {} overlap, each must have bytes of its own",
                     Quoted(before.name), Quoted(after.name));
    }
  }
  return base::Success();
}

// Sorting finds a second name in n log n whatever the names are: no hash to attack.
Result<void> GgufFile::IndexNames() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].name != tensors_[b].name ? tensors_[a].name < tensors_[b].name : a < b;
  });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const std::string_view tensor_name = tensors_[by_name_[i]].name;
    if (tensors_[by_name_[i - 1]].name == tensor_name) {
      return BadFile(name_, OffsetOf(tensor_name.data()),
                     "tensor name {} stands twice, names must be unique", Quoted(tensor_name));
    }
  }
  return base::Success();
}

const GgufTensor* GgufFile::Find(std::string_view tensor_name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), tensor_name,
      [&](std::size_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != tensor_name) return nullptr;
  return &tensors_[*found];
}

Result<const GgufTensor*> GgufFile::Get(std::string_view tensor_name) const {
  const GgufTensor* tensor = Find(tensor_name);
  if (tensor == nullptr) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: tensor {} is missing", name_,
                           Quoted(tensor_name));
  }
  return tensor;
}

Result<tensor::DType> GgufFile::DTypeOf(const GgufTensor& tensor) const {
  const auto dtype = ToDType(tensor.type);
  if (!dtype) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "{}: tensor {} has type {}, supported are f32, f16, bf16, Q8_0, Q4_0, "
                           "Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K",
                           name_, Quoted(tensor.name), InfoOf(tensor.type).name);
  }
  return *dtype;
}

std::uint64_t GgufFile::OffsetOf(const void* position) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(position) - bytes_.data());
}

}  // namespace kvasir::formats
