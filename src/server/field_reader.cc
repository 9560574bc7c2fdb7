#include "server/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

ApiError WrongType(std::string_view name, const JsonValue& value, std::string_view wanted) {
  return ApiError(400, fmt::format("'{}' is {}: it must be {}", name, KindName(value), wanted),
                  std::string(name), "invalid_type");
}

ApiError OutOfRange(std::string_view name, const std::string& written, std::string_view allowed) {
  constexpr std::size_t kShown = 40;
  const std::string shown = written.size() > kShown ? written.substr(0, kShown) + "…" : written;
  return ApiError(400, fmt::format("'{}' is {}: it must be {}", name, shown, allowed),
                  std::string(name), "invalid_value");
}

void Dump(const JsonValue& value, JsonWriter& json) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      json.Null();
      return;
    case JsonValue::Kind::kFalse:
    case JsonValue::Kind::kTrue:
      json.Bool(value.kind == JsonValue::Kind::kTrue);
      return;
    case JsonValue::Kind::kNumber:
      json.Raw(value.text);
      return;
    case JsonValue::Kind::kString:
      json.String(value.text);
      return;
    case JsonValue::Kind::kArray:
      json.BeginArray();
      for (const JsonValue& item : value.items) Dump(item, json);
      json.EndArray();
      return;
    case JsonValue::Kind::kObject:
      json.BeginObject();
      for (const auto& [name, member] : value.members) {
        json.Key(name);
        Dump(member, json);
      }
      json.EndObject();
      return;
  }
}

}  // namespace

ApiResult<JsonValue> ParseBody(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return ApiError(400, "the body is empty: a JSON object is needed", {}, "invalid_json");
  }
  auto parsed = constraints::ParseJson("the body", body);
  if (!parsed) return ApiError(400, parsed.error().message, {}, "invalid_json");
  if (!parsed.value().is_object()) {
    return ApiError(400,
                    fmt::format("the body is {}: it must be an object", KindName(parsed.value())),
                    {}, "invalid_json");
  }
  return std::move(parsed.value());
}

std::string DumpJson(const JsonValue& value) {
  JsonWriter json;
  Dump(value, json);
  return json.Take();
}

std::string_view KindName(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kFalse:
    case JsonValue::Kind::kTrue:
      return "a boolean";
    case JsonValue::Kind::kNumber:
      return "a number";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "an array";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  KV_CHECK(false);
}

ApiResult<std::uint64_t> WholeOf(std::string_view name, const JsonValue& value, WholeRange range) {
  const std::string allowed = fmt::format("a whole number from {} to {}", range.min, range.max);
  if (!value.is_number()) return WrongType(name, value, allowed);
  std::uint64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < range.min || number > range.max) {
    return OutOfRange(name, value.text, allowed);
  }
  return number;
}

ApiResult<double> NumberOf(std::string_view name, const JsonValue& value, NumberRange range) {
  const std::string allowed = range.min_open
                                  ? fmt::format("above {} and at most {}", range.min, range.max)
                                  : fmt::format("a number from {} to {}", range.min, range.max);
  if (!value.is_number()) return WrongType(name, value, allowed);
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, number);
  // What is too small for a double is 0 here; the JSON reader refused what is too large.
  if (read.ec == std::errc::result_out_of_range) number = 0;
  if ((read.ec != std::errc() && read.ec != std::errc::result_out_of_range) || read.ptr != end ||
      !(number <= range.max) || !(range.min_open ? number > range.min : number >= range.min)) {
    return OutOfRange(name, value.text, allowed);
  }
  return number;
}

const JsonValue* FieldReader::Find(std::string_view name) const {
  const JsonValue* value = object_.Find(name);
  return value == nullptr || value->kind == JsonValue::Kind::kNull ? nullptr : value;
}

ApiResult<std::optional<bool>> FieldReader::Bool(std::string_view name) const {
  const JsonValue* value = Find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) return WrongType(Name(name), *value, "true or false");
  return std::optional(value->kind == JsonValue::Kind::kTrue);
}

ApiResult<std::optional<std::string>> FieldReader::Text(std::string_view name) const {
  const JsonValue* value = Find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return WrongType(Name(name), *value, "a string");
  return std::optional(value->text);
}

ApiResult<std::optional<std::uint64_t>> FieldReader::Whole(std::string_view name,
                                                           WholeRange range) const {
  const JsonValue* value = Find(name);
  if (value == nullptr) return std::optional<std::uint64_t>();
  KV_TRY(const std::uint64_t number, WholeOf(Name(name), *value, range));
  return std::optional(number);
}

ApiResult<std::optional<double>> FieldReader::Number(std::string_view name,
                                                     NumberRange range) const {
  const JsonValue* value = Find(name);
  if (value == nullptr) return std::optional<double>();
  KV_TRY(const double number, NumberOf(Name(name), *value, range));
  return std::optional(number);
}

ApiResult<std::vector<std::string>> FieldReader::Texts(std::string_view name,
                                                       std::size_t most) const {
  const JsonValue* value = Find(name);
  if (value == nullptr) return std::vector<std::string>();
  if (value->is_string()) return std::vector<std::string>{value->text};
  const std::string allowed = fmt::format("a string, or an array of 1 to {} strings", most);
  if (!value->is_array()) return WrongType(Name(name), *value, allowed);
  if (value->items.empty() || value->items.size() > most) {
    return OutOfRange(Name(name), fmt::format("an array of {}", value->items.size()), allowed);
  }
  std::vector<std::string> texts;
  for (const JsonValue& item : value->items) {
    if (!item.is_string()) {
      return WrongType(fmt::format("{}[{}]", Name(name), texts.size()), item, "a string");
    }
    texts.push_back(item.text);
  }
  return texts;
}

ApiResult<void> FieldReader::Only(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : object_.members) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return ApiError(400,
                    fmt::format("'{}' is not known; allowed are {}", Name(name.substr(0, 64)),
                                fmt::join(names, ", ")),
                    Name(name.substr(0, 64)), "unknown_parameter");
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

}  // namespace kvasir::server
