// Schema: a JSON Schema as its keywords say, read and checked, references resolved.
#ifndef KVASIR_CONSTRAINTS_SCHEMA_H_
#define KVASIR_CONSTRAINTS_SCHEMA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "constraints/char_dfa.h"
#include "constraints/json_schema.h"
#include "constraints/json_value.h"
#include "constraints/number_set.h"

namespace kvasir::constraints {

// The kinds of JSON values that a schema tells apart. One bit each in a TypeSet.
enum class JsonType : std::uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
inline constexpr std::size_t kJsonTypes = 7;
using TypeSet = std::uint8_t;
inline constexpr TypeSet kAllTypes = (1u << kJsonTypes) - 1;
constexpr TypeSet TypeBit(JsonType type) {
  return static_cast<TypeSet>(1u << static_cast<unsigned>(type));
}

using SchemaId = std::uint32_t;  // Index into a SchemaSet.
inline constexpr SchemaId kTrueSchema = 0;
inline constexpr SchemaId kFalseSchema = 1;

using SharedDfa = std::shared_ptr<const CharDfa>;

// The values that enum or const lists, by type; arrays and objects as schemas of one value.
struct ListedValues {
  TypeSet plain = 0;  // null, false and true
  std::vector<Decimal> numbers;
  std::vector<std::string> strings;
  std::vector<SchemaId> others;
};

// All of these must hold; a keyword concerns values of its own type only. Applicators that say the
// same are folded: $ref is in all_of, if/then/else and dependencies are alternatives in any_of.
struct Schema {
  std::string place;  // JSON pointer, for messages.
  TypeSet types = kAllTypes;
  bool integers_only = false;  // "integer" without "number".
  std::vector<ListedValues> listed;
  NumberSet number;
  std::uint64_t min_length = 0, max_length = kNoMaximum;  // In characters.
  std::vector<SharedDfa> patterns;                        // Of strings: pattern and format.
  std::vector<SchemaId> prefix_items;
  SchemaId items = kTrueSchema;  // From prefix_items.size() on.
  std::uint64_t min_items = 0, max_items = kNoMaximum;
  std::vector<SchemaId> contains;
  std::vector<std::pair<std::string, SchemaId>> properties;
  std::vector<std::pair<SharedDfa, SchemaId>> pattern_properties;
  SchemaId additional = kTrueSchema;
  std::vector<SchemaId> property_names;
  std::vector<std::string> required;
  std::uint64_t min_properties = 0, max_properties = kNoMaximum;
  std::vector<SchemaId> all_of;
  std::vector<std::vector<SchemaId>> any_of;  // One of each list.
  std::vector<SchemaId> one_of;
  std::vector<SchemaId> none_of;
};

struct SchemaSet {
  std::vector<Schema> schemas;  // kTrueSchema and kFalseSchema first.
  SchemaId root = kTrueSchema;
};

// Errors are kUsage and name the place in the schema: a keyword with a value it cannot have, one
// that asserts something and is not supported, a reference that does not lead anywhere in this
// document.
base::Result<SchemaSet> ReadSchema(const JsonValue& document, const JsonSchemaOptions& options);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_SCHEMA_H_
