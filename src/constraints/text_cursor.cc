#include "constraints/text_cursor.h"

#include "constraints/grammar.h"

namespace kvasir::constraints {

using base::ErrorCode;
using base::MakeError;

base::Result<void> CheckConstraintText(std::string_view what, std::string_view text) {
  if (text.size() > kMaxConstraintBytes) {
    return MakeError(ErrorCode::kUsage, "{}: its {} bytes are more than {}, the limit", what,
                     text.size(), kMaxConstraintBytes);
  }
  if (const auto place = base::FirstInvalidUtf8(text)) {
    return MakeError(ErrorCode::kUsage, "{}, at byte {}: 0x{:02x} is not UTF-8", what, *place,
                     static_cast<std::uint8_t>(text[*place]));
  }
  return base::Success();
}

base::Error TextCursor::FailAt(std::size_t place, std::string_view message) const {
  return MakeError(ErrorCode::kUsage, "{}, at byte {}: {}", what_, place, message);
}

base::Result<std::uint64_t> TextCursor::TakeNumber(std::uint64_t most) {
  const std::size_t begin = place_;
  std::uint64_t value = 0;
  while (!AtEnd() && Peek() >= '0' && Peek() <= '9') {
    value = value > most ? value : value * 10 + static_cast<std::uint64_t>(Peek() - '0');
    ++place_;
  }
  if (place_ == begin) return Fail("a number is needed here");
  if (value > most) {
    return FailAt(begin, fmt::format("the number {} is above {}, the limit",
                                     text_.substr(begin, place_ - begin), most));
  }
  return value;
}

base::Result<std::uint32_t> TextCursor::TakeHex(std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const char c = ByteAt(0);
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<std::uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value << 4 | static_cast<std::uint32_t>(lower - 'a' + 10);
    } else {
      return Fail("{} hexadecimal digits are needed here", digits);
    }
    ++place_;
  }
  return value;
}

}  // namespace kvasir::constraints
