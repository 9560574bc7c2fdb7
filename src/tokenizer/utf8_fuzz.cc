// UTF-8: any bytes are replaced into valid text, and the decoder's steps tile the input.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"

using kvasir::base::Utf8Status;
using kvasir::base::Utf8Step;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string expected;  // Rebuilt from the steps alone.
  std::size_t first_invalid = size;
  for (std::size_t at = 0; at < size;) {
    const std::string_view rest = input.substr(at);
    const Utf8Step step = kvasir::base::DecodeUtf8(rest);
    KV_CHECK(step.bytes >= 1 && step.bytes <= 4 && step.bytes <= rest.size());
    if (step.status == Utf8Status::kOk) {
      std::string again;
      kvasir::base::AppendUtf8(step.code_point, again);
      KV_CHECK(again == rest.substr(0, step.bytes));
      expected += again;
    } else {
      KV_CHECK(step.bytes <= 3);
      KV_CHECK(step.status == Utf8Status::kInvalid || step.bytes == rest.size());
      if (first_invalid == size) first_invalid = at;
      expected += kvasir::base::kReplacement;
    }
    at += step.bytes;
  }
  const auto found = kvasir::base::FirstInvalidUtf8(input);
  KV_CHECK(found.value_or(size) == first_invalid);
  KV_CHECK(kvasir::base::Utf8ToCodePoints(input).has_value() == !found.has_value());

  const std::string replaced = kvasir::base::ReplaceInvalidUtf8(input);
  KV_CHECK(replaced == expected);
  KV_CHECK(!kvasir::base::FirstInvalidUtf8(replaced));
  KV_CHECK(kvasir::base::ReplaceInvalidUtf8(replaced) == replaced);
  if (!found) KV_CHECK(replaced == input);
  return 0;
}
