// Any bytes at all: ParseLlama2cTokenizer must return, not crash, and hold no more than they do.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/llama2c_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto tokenizer = kvasir::formats::ParseLlama2cTokenizer(bytes, "fuzz");
  if (!tokenizer) {
    KV_CHECK(tokenizer.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto& pieces = tokenizer.value().pieces;
  KV_CHECK(pieces.size() == tokenizer.value().scores.size());
  size_t held = sizeof(std::int32_t);
  for (const std::string& piece : pieces) held += 8 + piece.size();
  KV_CHECK(held == size);
  return 0;
}
