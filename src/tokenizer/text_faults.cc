#include "tokenizer/text_faults.h"

#include <cstdint>
#include <string>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;

// "'d' (U+0064)", or the number alone for what would spoil a line on a terminal.
std::string Describe(std::uint32_t code_point, std::string_view character) {
  const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
                       code_point == 0x2028 || code_point == 0x2029;
  return control ? fmt::format("U+{:04X}", code_point)
                 : fmt::format("'{}' (U+{:04X})", character, code_point);
}

}  // namespace

base::Result<void> CheckUtf8(std::string_view text) {
  const auto at = base::FirstInvalidUtf8(text);
  if (!at) return base::Success();
  return MakeError(ErrorCode::kBadData, "not valid UTF-8: byte 0x{:02X} at offset {}",
                   static_cast<std::uint8_t>(text[*at]), *at);
}

base::Error MissingCharacter(std::string_view text, std::size_t at) {
  const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
  return MakeError(ErrorCode::kUsage,
                   "the character {} at offset {} is not in the vocabulary, which has no byte "
                   "tokens for it",
                   Describe(step.code_point, text.substr(at, step.bytes)), at);
}

}  // namespace kvasir::tokenizer
