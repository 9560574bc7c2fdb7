// JSON as a tree, with numbers as they were written.
#ifndef KVASIR_CONSTRAINTS_JSON_VALUE_H_
#define KVASIR_CONSTRAINTS_JSON_VALUE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kvasir::constraints {

inline constexpr std::size_t kMaxJsonDepth = 256;

// A value. Members keep their order; their names differ.
struct JsonValue {
  enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;                                        // Of a string; a number as written.
  std::vector<JsonValue> items;                            // Of an array.
  std::vector<std::pair<std::string, JsonValue>> members;  // Of an object.

  bool is_object() const { return kind == Kind::kObject; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_bool() const { return kind == Kind::kFalse || kind == Kind::kTrue; }
  const JsonValue* Find(std::string_view name) const;  // Null if it is no object or lacks it.
};

// kUsage for what is not JSON (RFC 8259), has an object with two members of one name, or is nested
// more than kMaxJsonDepth deep; `what` begins the message, which names the place in bytes.
base::Result<JsonValue> ParseJson(std::string_view what, std::string_view text);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_JSON_VALUE_H_
