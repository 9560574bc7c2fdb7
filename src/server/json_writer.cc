#include "server/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::server {
namespace {

// ASCII of which nothing is escaped: most names and numbers.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

void AppendEscaped(std::string& out, std::string_view text) {
  std::size_t clean = 0;  // Where the bytes begin that are copied as they are.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) continue;
    out.append(text.substr(clean, i - clean));
    clean = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text.substr(clean));
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  if (IsPlain(text)) {
    out += text;
  } else if (base::FirstInvalidUtf8(text)) {
    AppendEscaped(out, base::ReplaceInvalidUtf8(text));
  } else {
    AppendEscaped(out, text);
  }
  out += '"';
}

void JsonWriter::BeforeValue() {
  if (!after_key_ && open_ > 0) {
    const std::uint64_t innermost = std::uint64_t{1} << (open_ - 1);
    if (has_members_ & innermost) out_ += ',';
    has_members_ |= innermost;
  }
  after_key_ = false;
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeforeValue();
  KV_CHECK(open_ < kMostOpen);
  out_ += bracket;
  has_members_ &= ~(std::uint64_t{1} << open_++);
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  KV_CHECK(open_ > 0 && !after_key_);
  --open_;
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::BeginObject() { return Open('{'); }
JsonWriter& JsonWriter::EndObject() { return Close('}'); }
JsonWriter& JsonWriter::BeginArray() { return Open('['); }
JsonWriter& JsonWriter::EndArray() { return Close(']'); }

JsonWriter& JsonWriter::Key(std::string_view name) {
  BeforeValue();
  AppendJsonString(out_, name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  AppendJsonString(out_, text);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::Null() { return Raw("null"); }
JsonWriter& JsonWriter::Uint(std::uint64_t value) {
  const fmt::format_int text(value);
  return Raw({text.data(), text.size()});
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  out_ += json;
  return *this;
}

}  // namespace kvasir::server
