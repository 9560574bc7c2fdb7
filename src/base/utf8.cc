#include "base/utf8.h"

#include "base/check.h"

namespace kvasir::base {
namespace {

struct LeadByte {
  std::size_t length;       // 0: not a lead byte.
  std::uint8_t second_min;  // Allowed range of the second byte (excludes overlong forms,
  std::uint8_t second_max;  // surrogates and values above U+10FFFF).
};

LeadByte Classify(std::uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view text) {
  KV_CHECK(!text.empty());
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const LeadByte lead = Classify(byte(0));
  if (lead.length == 0) return {Utf8Status::kInvalid, 0, 1};
  if (lead.length == 1) return {Utf8Status::kOk, byte(0), 1};
  std::uint32_t code_point = byte(0) & (0x7Fu >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Status::kTruncated, 0, i};
    const std::uint8_t low = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Status::kInvalid, 0, i};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8Status::kOk, code_point, lead.length};
}

std::optional<std::size_t> FirstInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    if (step.status != Utf8Status::kOk) return at;
    at += step.bytes;
  }
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> Utf8ToCodePoints(std::string_view text) {
  std::vector<std::uint32_t> code_points;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    if (step.status != Utf8Status::kOk) {
      return MakeError(ErrorCode::kBadData, "not valid UTF-8: byte 0x{:02X} at offset {}",
                       static_cast<std::uint8_t>(text[at]), at);
    }
    code_points.push_back(step.code_point);
    at += step.bytes;
  }
  return code_points;
}

void AppendUtf8(std::uint32_t code_point, std::string& out) {
  KV_CHECK(code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF));
  const auto put = [&](std::uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    out += step.status == Utf8Status::kOk ? text.substr(at, step.bytes) : kReplacement;
    at += step.bytes;
  }
  return out;
}

std::vector<std::string_view> SplitCharacters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    KV_CHECK(step.status == Utf8Status::kOk);
    characters.push_back(text.substr(at, step.bytes));
    at += step.bytes;
  }
  return characters;
}

}  // namespace kvasir::base
