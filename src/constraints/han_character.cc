#include "constraints/han_character.h"

#include "base/utf8.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

// Controls, spaces and invisible or direction-changing format characters: shown by number only.
bool SpoilsALine(std::uint32_t c) {
  return c <= 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || (c >= 0x1680 && c <= 0x180E) ||
         (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) ||
         (c >= 0x205F && c <= 0x206F) || c == 0x3000 || (c >= 0xFE00 && c <= 0xFE0F) ||
         c == 0xFEFF || (c >= 0xFFF0 && c <= 0xFFFF) || c >= 0xE0000;
}

}  // namespace

std::optional<std::uint32_t> SingleHanCharacter(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const base::Utf8Step step = base::DecodeUtf8(bytes);
  if (step.status != base::Utf8Status::kOk || step.bytes != bytes.size()) return std::nullopt;
  if (!IsHan(step.code_point)) return std::nullopt;
  return step.code_point;
}

std::string DescribeCharacter(std::uint32_t code_point) {
  const std::string number = fmt::format("U+{:04X}", code_point);
  if (SpoilsALine(code_point)) return number;
  std::string text = "'";
  base::AppendUtf8(code_point, text);
  return text + "' (" + number + ")";
}

base::Result<std::vector<std::uint32_t>> ParseHeads(std::string_view text) {
  if (text.empty()) {
    return MakeError(ErrorCode::kUsage, "no heads were given: one Han character a line is needed");
  }
  if (const auto offset = base::FirstInvalidUtf8(text)) {
    return MakeError(ErrorCode::kUsage, "the heads are not UTF-8: byte 0x{:02X} at offset {}",
                     static_cast<unsigned char>(text[*offset]), *offset);
  }
  KV_TRY(std::vector<std::uint32_t> heads, base::Utf8ToCodePoints(text));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (IsHan(heads[i])) continue;
    return MakeError(ErrorCode::kUsage,
                     "head {} is {}: a head is one Han character (U+3400–9FFF or U+20000–2FFFF)",
                     i + 1, DescribeCharacter(heads[i]));
  }
  return heads;
}

}  // namespace kvasir::constraints
