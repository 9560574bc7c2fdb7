// FieldReader: the members of a request's object, read by type and range.
#ifndef KVASIR_SERVER_FIELD_READER_H_
#define KVASIR_SERVER_FIELD_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "constraints/json_value.h"
#include "server/api_error.h"

namespace kvasir::server {

using constraints::JsonValue;

// The object that a body holds: 400 for what is not JSON, nested too deep, not UTF-8, with a name
// twice in an object, or no object.
ApiResult<JsonValue> ParseBody(std::string_view body);

// The text of a value, numbers as they were written.
std::string DumpJson(const JsonValue& value);

// "a string", "an object", …: for messages.
std::string_view KindName(const JsonValue& value);

// Both ends belong to it.
struct WholeRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};
struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_open = false;
};

// 400 naming `name` unless the value is such a number.
ApiResult<std::uint64_t> WholeOf(std::string_view name, const JsonValue& value, WholeRange range);
ApiResult<double> NumberOf(std::string_view name, const JsonValue& value, NumberRange range);

// Borrows the object. A member that is missing or null is nothing; one of another type or outside
// its range is a 400 that names it. Single-threaded.
class FieldReader {
 public:
  // prefix: "verse." of a nested object, for messages.
  explicit FieldReader(const JsonValue& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  const JsonValue* Find(std::string_view name) const;  // Null if missing or null.
  ApiResult<std::optional<bool>> Bool(std::string_view name) const;
  ApiResult<std::optional<std::string>> Text(std::string_view name) const;
  ApiResult<std::optional<std::uint64_t>> Whole(std::string_view name, WholeRange range) const;
  ApiResult<std::optional<double>> Number(std::string_view name, NumberRange range) const;
  // A string, or an array of 1 to `most` strings; empty if missing.
  ApiResult<std::vector<std::string>> Texts(std::string_view name, std::size_t most) const;
  // 400 for a member that is not one of these.
  ApiResult<void> Only(std::initializer_list<std::string_view> names) const;

  std::string Name(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const JsonValue& object_;
  const std::string prefix_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_FIELD_READER_H_
