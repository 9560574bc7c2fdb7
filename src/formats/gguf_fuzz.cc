// Any bytes at all: GgufFile::Parse and every getter must return, not crash, and what they give
// must lie inside the input.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "formats/gguf_reader.h"
#include "tensor/convert.h"

namespace kvasir::formats {
namespace {

bool Inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void ReadEverything(const GgufFile& file, std::span<const std::byte> bytes) {
  const GgufMetadata& metadata = file.metadata();
  std::size_t sink = 0;
  for (const GgufEntry& entry : metadata.entries()) {
    KV_CHECK(metadata.Find(entry.key) == &entry.value);
    KV_CHECK(Inside(entry.value.bytes, bytes));
    sink += entry.value.TypeText().size() + entry.value.ValueText().size();
    sink += metadata.GetUint(entry.key).has_value();
    sink += metadata.GetInt(entry.key).has_value();
    sink += metadata.GetFloat(entry.key).has_value();
    sink += metadata.GetBool(entry.key).has_value();
    sink += metadata.GetString(entry.key).has_value();
    sink += metadata.OptionalIntArray(entry.key).has_value();
    if (const auto floats = metadata.GetFloatArray(entry.key)) {
      KV_CHECK(floats.value().size() == entry.value.count);
    }
    if (const auto strings = metadata.GetStringArray(entry.key)) {
      for (const auto& text : strings.value()) {
        KV_CHECK(Inside(std::as_bytes(std::span(text.data(), text.size())), bytes));
      }
    }
  }
  unsigned sum = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    KV_CHECK(file.Find(tensor.name) == &tensor);
    KV_CHECK(Inside(tensor.data, bytes) && !tensor.data.empty());
    KV_CHECK(tensor.shape.ElementCount().has_value());
    if (const auto dtype = file.DTypeOf(tensor)) {
      std::vector<float> numbers(*tensor.shape.ElementCount());
      tensor::ConvertToF32(dtype.value(), tensor.data, numbers);
      sink += numbers.front() == 0.0f;
    }
    sum += static_cast<unsigned>(tensor.data.front()) + static_cast<unsigned>(tensor.data.back());
  }
  KV_CHECK(sink + sum + 1 > 0);
}

}  // namespace
}  // namespace kvasir::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = kvasir::formats::GgufFile::Parse(bytes, "fuzz");
  if (file) {
    kvasir::formats::ReadEverything(file.value(), bytes);
  } else {
    KV_CHECK(file.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
