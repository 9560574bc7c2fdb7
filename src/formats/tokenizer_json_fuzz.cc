// Any text: ParseTokenizerJson must return, not crash, and what it gives must be what its header
// promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "formats/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = ParseTokenizerJson(text, "fuzz");
  if (!read) {
    KV_CHECK(read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const TokenizerJson& file = read.value();
  KV_CHECK(!file.tokens.empty());
  const auto ascending = [](const auto& a, const auto& b) { return a.id >= b.id; };
  KV_CHECK(std::adjacent_find(file.tokens.begin(), file.tokens.end(), ascending) ==
           file.tokens.end());
  KV_CHECK(std::adjacent_find(file.added.begin(), file.added.end(), ascending) == file.added.end());
  for (const auto& [left, right] : file.merges) KV_CHECK(!left.empty() && !right.empty());
  return 0;
}
