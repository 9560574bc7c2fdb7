#include "cli/text_encoding.h"

#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/character_count.h"
#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16LeMark = "\xFF\xFE";
constexpr std::string_view kUtf16BeMark = "\xFE\xFF";

// In the order of TextEncoding.
constexpr std::array<const char*, 6> kNames = {"auto",   "utf-8",    "gb18030",
                                               "utf-16", "utf-16le", "utf-16be"};

// The C library's conversion to UTF-8.
class Converter {
 public:
  explicit Converter(const char* from) : handle_(iconv_open("UTF-8", from)) {}
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  ~Converter() {
    if (is_open()) iconv_close(handle_);
  }
  bool is_open() const { return handle_ != reinterpret_cast<iconv_t>(-1); }

  // Appends what it can of bytes to out; returns how many bytes that were.
  std::size_t Convert(std::string_view bytes, std::string& out) {
    char* in = const_cast<char*>(bytes.data());  // iconv only reads.
    std::size_t in_left = bytes.size();
    std::array<char, 1 << 14> buffer;
    while (in_left > 0) {
      char* end = buffer.data();
      std::size_t room = buffer.size();
      const std::size_t done = iconv(handle_, &in, &in_left, &end, &room);
      out.append(buffer.data(), end);
      if (done == static_cast<std::size_t>(-1) && errno != E2BIG) break;
    }
    return bytes.size() - in_left;
  }

 private:
  iconv_t handle_;
};

Result<std::string> Convert(std::string_view bytes, std::size_t mark, const char* iconv_name,
                            std::string_view name) {
  Converter converter(iconv_name);
  if (!converter.is_open()) {
    return MakeError(ErrorCode::kIo, "the C library of this machine cannot read {}", name);
  }
  std::string text;
  const std::size_t read = mark + converter.Convert(bytes.substr(mark), text);
  if (read == bytes.size()) return text;
  return MakeError(ErrorCode::kBadData, "it is not {}: byte 0x{:02X} at offset {}", name,
                   static_cast<std::uint8_t>(bytes[read]), read);
}

// Whether bytes are text in an encoding that was not asked for.
bool IsGb18030(std::string_view bytes) {
  const auto text = Convert(bytes, 0, "GB18030", "GB18030");
  return text.has_value() && text.value().find('\0') == std::string::npos;
}

// Of letters, blanks and digits in UTF-16 every second byte is 0, and no other is.
std::optional<TextEncoding> GuessUtf16(std::string_view bytes) {
  if (bytes.size() % 2 != 0) return std::nullopt;
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i) zeros[i % 2] += bytes[i] == '\0';
  for (const int odd : {0, 1}) {
    if (zeros[1 - odd] == 0 && zeros[odd] > 0 && 4 * zeros[odd] >= bytes.size()) {
      return odd == 1 ? TextEncoding::kUtf16Le : TextEncoding::kUtf16Be;
    }
  }
  return std::nullopt;
}

// U+0000 at this byte. guess: an encoding of which it would be a part.
base::Error NotText(std::size_t offset, std::optional<TextEncoding> guess) {
  base::Error error = MakeError(ErrorCode::kBadData, "it is no text: U+0000 at offset {}", offset);
  if (!guess) return error;
  return WithHint(std::move(error), fmt::format("it may be UTF-16 without a byte order mark: "
                                                "--encoding {}",
                                                kNames[static_cast<std::size_t>(*guess)]));
}

Result<std::string> FromUtf8(std::string_view bytes) {
  const std::size_t mark = bytes.starts_with(kUtf8Mark) ? kUtf8Mark.size() : 0;
  if (const std::size_t zero = bytes.find('\0'); zero != bytes.npos) {
    return NotText(zero, GuessUtf16(bytes));
  }
  const auto invalid = base::FirstInvalidUtf8(bytes);
  if (!invalid) return std::string(bytes.substr(mark));
  base::Error error = MakeError(ErrorCode::kBadData, "it is not UTF-8: byte 0x{:02X} at offset {}",
                                static_cast<std::uint8_t>(bytes[*invalid]), *invalid);
  if (!IsGb18030(bytes)) return error;
  return WithHint(std::move(error), "it can be read as GB18030: --encoding gb18030");
}

Result<std::string> FromGb18030(std::string_view bytes) {
  constexpr std::size_t kPlainlyUtf8 = 8;  // Chance makes shorter texts fit both.
  if (const std::size_t zero = bytes.find('\0'); zero != bytes.npos) {
    return NotText(zero, std::nullopt);
  }
  const auto ascii = std::count_if(bytes.begin(), bytes.end(),
                                   [](char c) { return static_cast<std::uint8_t>(c) < 0x80; });
  if (!base::FirstInvalidUtf8(bytes) &&
      base::CountCharacters(bytes) - static_cast<std::uint64_t>(ascii) >= kPlainlyUtf8) {
    return WithHint(MakeError(ErrorCode::kBadData, "it is UTF-8, not GB18030"),
                    "leave --encoding out, or convert the files that differ from the others");
  }
  return Convert(bytes, 0, "GB18030", "GB18030");
}

Result<std::string> FromUtf16(std::string_view bytes, bool little, std::size_t mark) {
  KV_TRY(std::string text, Convert(bytes, mark, little ? "UTF-16LE" : "UTF-16BE",
                                   little ? "UTF-16 (little-endian)" : "UTF-16 (big-endian)"));
  if (text.find('\0') == std::string::npos) return text;
  std::size_t at = mark;
  while (bytes[at] != '\0' || bytes[at + 1] != '\0') at += 2;
  return NotText(at, std::nullopt);
}

}  // namespace

const std::vector<std::string>& TextEncodingNames() {
  static const std::vector<std::string> names(kNames.begin(), kNames.end());
  return names;
}

TextEncoding FindTextEncoding(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  KV_CHECK(found != kNames.end());
  return static_cast<TextEncoding>(found - kNames.begin());
}

Result<std::string> ToUtf8(std::string_view bytes, TextEncoding encoding) {
  const bool little = bytes.starts_with(kUtf16LeMark);
  const bool big = bytes.starts_with(kUtf16BeMark);
  switch (encoding) {
    case TextEncoding::kAuto:
      return little || big ? FromUtf16(bytes, little, 2) : FromUtf8(bytes);
    case TextEncoding::kUtf8:
      return FromUtf8(bytes);
    case TextEncoding::kGb18030:
      return FromGb18030(bytes);
    case TextEncoding::kUtf16:
      return FromUtf16(bytes, !big, little || big ? 2 : 0);
    case TextEncoding::kUtf16Le:
      return FromUtf16(bytes, true, little ? 2 : 0);
    case TextEncoding::kUtf16Be:
      return FromUtf16(bytes, false, big ? 2 : 0);
  }
  return MakeError(ErrorCode::kUsage, "encoding {} is not known", static_cast<int>(encoding));
}

Result<std::string> ReadTextFile(base::Env& env, const std::string& path, TextEncoding encoding) {
  KV_TRY(const auto file, env.Map(path));
  auto text = ToUtf8(file->text(), encoding);
  if (!text) {
    base::Error error = text.error();
    if (error.message.starts_with("it ")) error.message.replace(0, 2, fmt::format("'{}'", path));
    return error;
  }
  if (text.value().empty()) return MakeError(ErrorCode::kBadData, "'{}' is empty", path);
  return text;
}

}  // namespace kvasir::cli
