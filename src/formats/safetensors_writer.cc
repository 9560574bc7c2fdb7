#include "formats/safetensors_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/json_document.h"

namespace kvasir::formats {
namespace {

std::string_view TypeName(tensor::DType dtype) {
  constexpr std::string_view kNames[] = {"F32", "F16", "BF16"};
  KV_CHECK(dtype <= tensor::DType::kBF16);
  return kNames[static_cast<std::size_t>(dtype)];
}

void AppendBytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

void SafetensorsWriter::Add(std::string_view name, const tensor::Shape& shape, tensor::DType dtype,
                            std::vector<std::byte> data) {
  KV_CHECK(data.size() == tensor::BytesOf(dtype, shape.ElementCount().value()));
  header_ += ',';
  AppendJsonString(name, header_);
  header_ +=
      fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", TypeName(dtype),
                  fmt::join(shape.dims(), ","), data_.size(), data_.size() + data.size());
  AppendBytes(data_, data);
}

std::vector<std::byte> SafetensorsWriter::Encode() const {
  std::string header = R"({"__metadata__":{"format":"pt"})" + header_ + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  std::vector<std::byte> out;
  out.reserve(sizeof(length) + header.size() + data_.size());
  AppendBytes(out, std::as_bytes(std::span(&length, 1)));
  AppendBytes(out, std::as_bytes(std::span(header)));
  AppendBytes(out, data_);
  return out;
}

base::Result<void> SafetensorsWriter::Write(base::Env& env, const std::string& path) const {
  return base::WriteFileAtomic(env, path, Encode());
}

}  // namespace kvasir::formats
