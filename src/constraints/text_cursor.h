// TextCursor: walks through a text that is being parsed; every error names the place.
#ifndef KVASIR_CONSTRAINTS_TEXT_CURSOR_H_
#define KVASIR_CONSTRAINTS_TEXT_CURSOR_H_

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/utf8.h"

namespace kvasir::constraints {

// kUsage if the text of a regex, grammar or schema is longer than the limit (grammar.h) or not
// UTF-8, naming the place. `what` begins the message.
base::Result<void> CheckConstraintText(std::string_view what, std::string_view text);

// Borrows the text, which must be valid UTF-8 and outlive it. Single-threaded.
class TextCursor {
 public:
  // `what` begins messages: "regex".
  TextCursor(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  bool AtEnd() const { return place_ == text_.size(); }
  std::size_t place() const { return place_; }  // in bytes
  std::string_view rest() const { return text_.substr(place_); }
  bool LooksAt(std::string_view next) const { return rest().starts_with(next); }
  // The byte so many after this one; 0 behind the end.
  char ByteAt(std::size_t distance) const {
    return distance < rest().size() ? rest()[distance] : '\0';
  }
  // Goes past `next` if it stands here.
  bool Skip(std::string_view next) {
    if (!LooksAt(next)) return false;
    place_ += next.size();
    return true;
  }
  // Goes past one character. Requires !AtEnd().
  std::uint32_t Take() {
    const base::Utf8Step step = base::DecodeUtf8(rest());
    place_ += step.bytes;
    return step.code_point;
  }
  // The byte here. Requires !AtEnd().
  char Peek() const { return text_[place_]; }

  // A decimal number of at least one digit; kUsage above most.
  base::Result<std::uint64_t> TakeNumber(std::uint64_t most);
  // Exactly so many hexadecimal digits, at most 8.
  base::Result<std::uint32_t> TakeHex(std::size_t digits);

  // "regex, at byte 5: …", kUsage.
  template <typename... Args>
  base::Error Fail(fmt::format_string<Args...> format, Args&&... args) const {
    return FailAt(place_, fmt::format(format, std::forward<Args>(args)...));
  }
  base::Error FailAt(std::size_t place, std::string_view message) const;

 private:
  std::string_view what_;
  std::string_view text_;
  std::size_t place_ = 0;
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_TEXT_CURSOR_H_
