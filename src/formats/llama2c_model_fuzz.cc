// Any bytes at all: Llama2cModel::Parse must return, not crash, and its tensors lie in the bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/llama2c_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto model = kvasir::formats::Llama2cModel::Parse(bytes, "fuzz");
  if (!model) {
    KV_CHECK(model.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& tensor : model.value().tensors()) {
    KV_CHECK(tensor.data.data() >= bytes.data());
    KV_CHECK(tensor.data.data() + tensor.data.size() <= bytes.data() + size);
    KV_CHECK(tensor.shape.ElementCount().value() * sizeof(float) == tensor.data.size());
    KV_CHECK(model.value().Find(tensor.name, tensor.layer) == &tensor);
  }
  return 0;
}
