#include "formats/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "formats/byte_cursor.h"
#include "formats/printable.h"

namespace kvasir::formats {

// Receives the parser's events; every function returns whether to go on.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(JsonDocument& document) : document_(document) {}

  bool null() override { return Add(JsonKind::kNull, 0); }
  bool boolean(bool value) override { return Add(JsonKind::kBool, value ? 1 : 0); }
  bool number_unsigned(number_unsigned_t value) override { return Add(JsonKind::kUint, value); }
  bool number_integer(number_integer_t value) override {
    return Add(JsonKind::kInt, std::bit_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(JsonKind::kFloat, std::bit_cast<std::uint64_t>(value));
  }
  bool string(string_t& text) override {
    JsonNode::Slot slot = {};
    slot.kind = JsonKind::kString;
    slot.text.offset = static_cast<std::uint32_t>(document_.text_.size());
    slot.text.bytes = static_cast<std::uint32_t>(text.size());
    document_.text_.insert(document_.text_.end(), text.begin(), text.end());
    slot.end = Next() + 1;
    document_.slots_.push_back(slot);
    return true;
  }
  bool key(string_t& name) override { return string(name); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(JsonKind::kObject); }
  bool start_array(std::size_t) override { return Open(JsonKind::kArray); }
  bool end_array() override { return Close(); }
  bool end_object() override {
    const std::size_t at = open_.back();
    return Close() && NamesDiffer(at);
  }
  bool parse_error(std::size_t place, const std::string& token,
                   const nlohmann::detail::exception&) override {
    error_ = BadFile(document_.name_, place, "this is not JSON, or ends too early, at {}",
                     Quoted(base::ReplaceInvalidUtf8(token)));
    return false;
  }

  base::Result<void> Finish(bool done) {
    if (error_) return *error_;
    if (!done) {
      return base::MakeError(base::ErrorCode::kBadData, "{}: this is not JSON", document_.name_);
    }
    return base::Success();
  }

 private:
  std::uint32_t Next() const { return static_cast<std::uint32_t>(document_.slots_.size()); }
  bool Add(JsonKind kind, std::uint64_t number) {
    JsonNode::Slot slot = {};
    slot.number = number;
    slot.end = Next() + 1;
    slot.kind = kind;
    document_.slots_.push_back(slot);
    return true;
  }
  bool Open(JsonKind kind) {
    if (open_.size() == kMaxJsonFileDepth) {
      error_ = base::MakeError(base::ErrorCode::kBadData,
                               "{}: values are nested more than {} deep, which is the most",
                               document_.name_, kMaxJsonFileDepth);
      return false;
    }
    open_.push_back(document_.slots_.size());
    return Add(kind, 0);
  }
  bool Close() {
    document_.slots_[open_.back()].end = Next();
    open_.pop_back();
    return true;
  }
  bool NamesDiffer(std::size_t at) {
    const JsonNode object(document_.slots_.data(), document_.text_.data(), at);
    names_.clear();
    for (const JsonItem& item : object.items()) names_.push_back(item.key);
    std::sort(names_.begin(), names_.end());
    const auto twice = std::adjacent_find(names_.begin(), names_.end());
    if (twice == names_.end()) return true;
    error_ = base::MakeError(base::ErrorCode::kBadData,
                             "{}: an object has two members {}, names must be unique",
                             document_.name_, Quoted(*twice));
    return false;
  }

  JsonDocument& document_;
  std::vector<std::size_t> open_;  // Slots of the arrays and objects around what is read.
  std::vector<std::string_view> names_;
  std::optional<base::Error> error_;
};

JsonKind JsonNode::kind() const { return slot().kind; }

std::optional<bool> JsonNode::AsBool() const {
  if (kind() != JsonKind::kBool) return std::nullopt;
  return slot().number != 0;
}

std::optional<std::uint64_t> JsonNode::AsUint() const {
  if (kind() != JsonKind::kUint) return std::nullopt;
  return slot().number;
}

std::optional<double> JsonNode::AsDouble() const {
  switch (kind()) {
    case JsonKind::kUint:
      return static_cast<double>(slot().number);
    case JsonKind::kInt:
      return static_cast<double>(std::bit_cast<std::int64_t>(slot().number));
    case JsonKind::kFloat:
      return std::bit_cast<double>(slot().number);
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> JsonNode::AsString() const {
  if (kind() != JsonKind::kString) return std::nullopt;
  return std::string_view(text_ + slot().text.offset, slot().text.bytes);
}

JsonItems JsonNode::items() const { return JsonItems(*this); }

std::optional<JsonNode> JsonNode::Find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  for (const JsonItem& item : items()) {
    if (item.key == key) return item.value;
  }
  return std::nullopt;
}

std::string JsonNode::Text() const {
  switch (kind()) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return *AsBool() ? "true" : "false";
    case JsonKind::kUint:
      return fmt::format("{}", slot().number);
    case JsonKind::kInt:
      return fmt::format("{}", std::bit_cast<std::int64_t>(slot().number));
    case JsonKind::kFloat:
      return fmt::format("{}", *AsDouble());
    case JsonKind::kString:
      return Quoted(*AsString());
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "?";
}

JsonItems::Iterator JsonItems::begin() const {
  const bool holds = parent_.is_array() || parent_.is_object();
  return {parent_, holds ? parent_.at_ + 1 : parent_.slot().end};
}

JsonItems::Iterator JsonItems::end() const { return {parent_, parent_.slot().end}; }

JsonItem JsonItems::Iterator::operator*() const {
  const JsonNode first(parent_.slots_, parent_.text_, at_);
  if (!parent_.is_object()) return {{}, first};
  return {*first.AsString(), JsonNode(parent_.slots_, parent_.text_, at_ + 1)};
}

JsonItems::Iterator& JsonItems::Iterator::operator++() {
  at_ = parent_.slots_[parent_.is_object() ? at_ + 1 : at_].end;
  return *this;
}

base::Result<JsonDocument> JsonDocument::Parse(std::string_view text, std::string name) {
  JsonDocument document;
  document.name_ = std::move(name);
  if (text.size() > kMaxJsonFileBytes) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: {} bytes of JSON; at most {} are read",
                           document.name_, text.size(), kMaxJsonFileBytes);
  }
  JsonBuilder builder(document);
  KV_TRY(builder.Finish(nlohmann::json::sax_parse(text.begin(), text.end(), &builder)));
  return document;
}

base::Result<JsonDocument> JsonDocument::Open(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  return Parse(file->text(), path);
}

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : base::ReplaceInvalidUtf8(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace kvasir::formats
