// Any bytes at all: SafetensorsFile::Parse must return, not crash, and the tensors it gives must
// cover the data behind the header, one after the other.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "formats/safetensors_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = formats::SafetensorsFile::Parse(bytes, "fuzz");
  if (!file) {
    KV_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  std::uint64_t header;
  std::memcpy(&header, data, sizeof(header));
  std::size_t next = sizeof(header) + header;
  for (const formats::SafetensorsTensor& tensor : file.value().tensors()) {
    KV_CHECK(file.value().Find(tensor.name) == &tensor);
    KV_CHECK(tensor.data.empty() || tensor.data.data() == bytes.data() + next);
    if (tensor.dtype) {
      KV_CHECK(tensor.data.size() ==
               tensor.shape.ElementCount().value() * tensor::BytesPerElement(*tensor.dtype));
    }
    next += tensor.data.size();
  }
  KV_CHECK(next == size);
  return 0;
}
