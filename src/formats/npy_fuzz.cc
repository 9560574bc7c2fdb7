// Any bytes at all: ParseNpyF32 must return, not crash, and give as many values as its shape says.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto array = kvasir::formats::ParseNpyF32(std::as_bytes(std::span(data, size)), "fuzz");
  if (array) {
    KV_CHECK(array.value().shape.ElementCount() == array.value().values.size());
    KV_CHECK(array.value().values.size() <= size);
  } else {
    KV_CHECK(array.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
