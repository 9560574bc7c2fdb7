#include "formats/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace kvasir::formats {

std::string Quoted(std::string_view text, char quote, std::size_t max_characters) {
  std::string out(1, quote);
  for (std::size_t at = 0, characters = 0; at < text.size(); ++characters) {
    if (characters == max_characters) {
      out += "…";
      break;
    }
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    const std::string_view character = text.substr(at, step.bytes);
    at += step.bytes;
    if (step.status != base::Utf8Status::kOk) {
      for (const char byte : character) {
        out += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
      }
    } else if (step.code_point == '\n') {
      out += "\\n";
    } else if (step.code_point < 0x20 || (step.code_point >= 0x7F && step.code_point < 0xA0)) {
      out += fmt::format("\\u{:04X}", step.code_point);
    } else {
      if (character[0] == quote || character[0] == '\\') out += '\\';
      out += character;
    }
  }
  return out + quote;
}

}  // namespace kvasir::formats
