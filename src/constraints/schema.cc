#include "constraints/schema.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <boost/unordered/unordered_flat_map.hpp>

#include "constraints/regex.h"
#include "constraints/schema_format.h"
#include "constraints/schema_references.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::uint64_t kMaxCount = 1'000'000'000'000;

// How old drafts differ, as far as it matters here.
struct Draft {
  bool ref_stands_alone = false;  // Up to draft 7 the neighbours of $ref are ignored.
};

class SchemaReader {
 public:
  SchemaReader(const JsonValue& document, const JsonSchemaOptions& options)
      : document_(document), options_(options), references_(document) {}

  Result<SchemaSet> Read() {
    set_.schemas.resize(2);
    set_.schemas[kFalseSchema].types = 0;
    KV_TRY(ReadDraft());
    set_.root = IdOf(document_);
    // A queue, not recursion: references may form long chains and circles.
    while (!open_.empty()) {
      const auto [value, id] = open_.back();
      open_.pop_back();
      KV_TRY(Schema schema, ReadOne(*value));
      set_.schemas[id] = std::move(schema);
    }
    return std::move(set_);
  }

 private:
  using Keyword = Result<void> (SchemaReader::*)(Schema&, const JsonValue&, const JsonValue&);

  template <typename... Args>
  base::Error Fail(const JsonValue& at, fmt::format_string<Args...> format, Args&&... args) const {
    return MakeError(ErrorCode::kUsage, "schema, at '{}': {}", references_.PlaceOf(at),
                     fmt::format(format, std::forward<Args>(args)...));
  }

  SchemaId Add(Schema schema) {
    set_.schemas.push_back(std::move(schema));
    return static_cast<SchemaId>(set_.schemas.size() - 1);
  }
  // The id of the schema that a value is, which will be read later.
  SchemaId IdOf(const JsonValue& value) {
    if (value.kind == JsonValue::Kind::kTrue) return kTrueSchema;
    if (value.kind == JsonValue::Kind::kFalse) return kFalseSchema;
    const auto known = ids_.find(&value);
    if (known != ids_.end()) return known->second;
    const SchemaId id = Add({});
    ids_.emplace(&value, id);
    open_.push_back({&value, id});
    return id;
  }
  SchemaId Not(SchemaId schema) {
    Schema negation;
    negation.none_of = {schema};
    return Add(std::move(negation));
  }

  Result<void> ReadDraft() {
    const JsonValue* named = document_.Find("$schema");
    if (named == nullptr) return base::Success();
    const std::string& uri = named->text;
    const auto is = [&](std::string_view part) { return uri.find(part) != std::string::npos; };
    if (!is("json-schema.org/")) {
      return Fail(document_, "the $schema '{}' is not known: drafts 4 to 2020-12 are", uri);
    }
    const bool old = is("draft-03") || is("draft-04") || is("draft-06") || is("draft-07");
    draft_ = {old};
    return base::Success();
  }

  Result<Schema> ReadOne(const JsonValue& value) {
    Schema schema;
    schema.place = references_.PlaceOf(value);
    if (!value.is_object()) return Fail(value, "a schema must be an object, true or false");
    const JsonValue* ref = value.Find("$ref");
    if (ref != nullptr && ref->is_string() && draft_.ref_stands_alone) {
      KV_TRY(ReadRef(schema, *ref, value));
      return schema;
    }
    for (const auto& [name, member] : value.members) {
      const auto keyword = Keywords().find(name);
      if (keyword == Keywords().end()) continue;  // An annotation, or unknown.
      if (keyword->second == nullptr) {
        return Fail(value, "the keyword '{}' is not supported", name);
      }
      KV_TRY((this->*keyword->second)(schema, member, value));
    }
    return schema;
  }

  static const std::map<std::string, Keyword, std::less<>>& Keywords() {
    using R = SchemaReader;
    static const std::map<std::string, Keyword, std::less<>> keywords = {
        {"$ref", &R::ReadRef},
        {"$schema", &R::ReadMetaschema},
        {"$dynamicRef", nullptr},
        {"$recursiveRef", nullptr},
        {"type", &R::ReadType},
        {"enum", &R::ReadEnum},
        {"const", &R::ReadConst},
        {"minimum", &R::ReadMinimum},
        {"maximum", &R::ReadMaximum},
        {"exclusiveMinimum", &R::ReadExclusiveMinimum},
        {"exclusiveMaximum", &R::ReadExclusiveMaximum},
        {"multipleOf", &R::ReadMultipleOf},
        {"minLength", &R::ReadMinLength},
        {"maxLength", &R::ReadMaxLength},
        {"pattern", &R::ReadPattern},
        {"format", &R::ReadFormat},
        {"items", &R::ReadItems},
        {"prefixItems", &R::ReadPrefixItems},
        {"minItems", &R::ReadMinItems},
        {"maxItems", &R::ReadMaxItems},
        {"uniqueItems", &R::ReadUniqueItems},
        {"contains", &R::ReadContains},
        {"properties", &R::ReadProperties},
        {"patternProperties", &R::ReadPatternProperties},
        {"additionalProperties", &R::ReadAdditional},
        {"propertyNames", &R::ReadPropertyNames},
        {"required", &R::ReadRequired},
        {"minProperties", &R::ReadMinProperties},
        {"maxProperties", &R::ReadMaxProperties},
        {"dependentRequired", &R::ReadDependencies},
        {"dependentSchemas", &R::ReadDependencies},
        {"dependencies", &R::ReadDependencies},
        {"allOf", &R::ReadAllOf},
        {"anyOf", &R::ReadAnyOf},
        {"oneOf", &R::ReadOneOf},
        {"not", &R::ReadNot},
        {"if", &R::ReadIf},
        {"unevaluatedItems", nullptr},
        {"unevaluatedProperties", nullptr},
    };
    return keywords;
  }

  // Keywords: the schema, the keyword's value, the object it stands in.

  Result<void> ReadRef(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_string()) return Fail(at, "$ref must be a string");
    KV_TRY(const JsonValue* target, references_.Resolve(at, value.text));
    schema.all_of.push_back(IdOf(*target));
    return base::Success();
  }
  Result<void> ReadMetaschema(Schema&, const JsonValue& value, const JsonValue& at) {
    const JsonValue* root = document_.Find("$schema");
    if (&at != &document_ && (root == nullptr || root->text != value.text)) {
      return Fail(at, "a $schema of its own is not supported inside a schema");
    }
    return base::Success();
  }
  Result<void> ReadType(Schema& schema, const JsonValue& value, const JsonValue& at) {
    std::vector<const JsonValue*> names;
    if (value.is_string()) names.push_back(&value);
    for (const JsonValue& item : value.items) names.push_back(&item);
    bool integer = false, number = false;
    schema.types = 0;
    for (const JsonValue* name : names) {
      const std::string& text = name->text;
      if (text == "integer" || text == "number") {
        schema.types |= TypeBit(JsonType::kNumber);
        (text == "integer" ? integer : number) = true;
      } else if (text == "boolean") {
        schema.types |= TypeBit(JsonType::kFalse) | TypeBit(JsonType::kTrue);
      } else if (text == "null" || text == "string" || text == "array" || text == "object") {
        schema.types |= TypeBit(text == "null"     ? JsonType::kNull
                                : text == "string" ? JsonType::kString
                                : text == "array"  ? JsonType::kArray
                                                   : JsonType::kObject);
      } else {
        return Fail(at,
                    "type '{}' is not one of null, boolean, integer, number, string, array, "
                    "object",
                    text);
      }
    }
    if (names.empty()) return Fail(at, "type must be a name or a list of names");
    schema.integers_only = integer && !number;
    return base::Success();
  }

  // A value of enum or const: arrays and objects as schemas of that one value.
  Result<void> List(const JsonValue& value, const JsonValue& at, ListedValues& listed) {
    switch (value.kind) {
      case JsonValue::Kind::kNull:
        listed.plain |= TypeBit(JsonType::kNull);
        break;
      case JsonValue::Kind::kFalse:
        listed.plain |= TypeBit(JsonType::kFalse);
        break;
      case JsonValue::Kind::kTrue:
        listed.plain |= TypeBit(JsonType::kTrue);
        break;
      case JsonValue::Kind::kNumber: {
        KV_TRY(const Decimal number, NumberOf(value, at, "enum"));
        listed.numbers.push_back(number);
        break;
      }
      case JsonValue::Kind::kString:
        listed.strings.push_back(value.text);
        break;
      default: {
        Schema only;
        only.place = references_.PlaceOf(at);
        only.types = TypeBit(value.is_array() ? JsonType::kArray : JsonType::kObject);
        only.items = only.additional = kFalseSchema;
        only.min_items = value.items.size();
        const auto one = [&](const JsonValue& part) -> Result<SchemaId> {
          Schema schema;
          schema.place = only.place;
          schema.listed.emplace_back();
          KV_TRY(List(part, at, schema.listed.back()));
          return Add(std::move(schema));
        };
        for (const JsonValue& item : value.items) {
          KV_TRY(const SchemaId id, one(item));
          only.prefix_items.push_back(id);
        }
        for (const auto& [name, member] : value.members) {
          KV_TRY(const SchemaId id, one(member));
          only.properties.emplace_back(name, id);
          only.required.push_back(name);
        }
        listed.others.push_back(Add(std::move(only)));
      }
    }
    return base::Success();
  }
  Result<void> ReadEnum(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_array()) return Fail(at, "enum must be an array");
    ListedValues listed;
    for (const JsonValue& item : value.items) {
      KV_TRY(List(item, at, listed));
    }
    schema.listed.push_back(std::move(listed));
    return base::Success();
  }
  Result<void> ReadConst(Schema& schema, const JsonValue& value, const JsonValue& at) {
    ListedValues listed;
    KV_TRY(List(value, at, listed));
    schema.listed.push_back(std::move(listed));
    return base::Success();
  }

  Result<Decimal> NumberOf(const JsonValue& value, const JsonValue& at, std::string_view name) {
    if (!value.is_number()) return Fail(at, "{} must be a number", name);
    const auto number = Decimal::Parse(value.text);
    if (!number) {
      return Fail(at, "{}: the exponent of {} is beyond {}, the limit", name, value.text,
                  kMaxDecimalExponent);
    }
    return *number;
  }
  static void Bound(NumberSet& number, NumberBound bound, bool lower) {
    NumberSet one;
    (lower ? one.min : one.max) = std::move(bound);
    number = *number.Intersect(one);
  }
  Result<void> ReadBound(Schema& schema, const JsonValue& value, const JsonValue& at, bool lower,
                         bool open) {
    const char* exclusive = lower ? "exclusiveMinimum" : "exclusiveMaximum";
    // In draft 4 the exclusive keyword says of the other whether it is.
    if (open && value.is_bool()) return base::Success();
    const JsonValue* other = at.Find(exclusive);
    if (!open && other != nullptr && other->kind == JsonValue::Kind::kTrue) open = true;
    KV_TRY(Decimal number, NumberOf(value, at, lower ? "minimum" : "maximum"));
    Bound(schema.number, {std::move(number), open}, lower);
    return base::Success();
  }
  Result<void> ReadMinimum(Schema& schema, const JsonValue& value, const JsonValue& at) {
    return ReadBound(schema, value, at, true, false);
  }
  Result<void> ReadMaximum(Schema& schema, const JsonValue& value, const JsonValue& at) {
    return ReadBound(schema, value, at, false, false);
  }
  Result<void> ReadExclusiveMinimum(Schema& schema, const JsonValue& value, const JsonValue& at) {
    return ReadBound(schema, value, at, true, true);
  }
  Result<void> ReadExclusiveMaximum(Schema& schema, const JsonValue& value, const JsonValue& at) {
    return ReadBound(schema, value, at, false, true);
  }
  Result<void> ReadMultipleOf(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(Decimal number, NumberOf(value, at, "multipleOf"));
    if (number.digits <= 0) return Fail(at, "multipleOf is {}: it must be > 0", value.text);
    schema.number.multiple_of = std::move(number);
    return base::Success();
  }

  Result<std::uint64_t> CountOf(const JsonValue& value, const JsonValue& at) {
    const auto number = value.is_number() ? Decimal::Parse(value.text) : std::nullopt;
    const auto count = number ? ToCount(*number, kMaxCount) : std::nullopt;
    if (!count) return Fail(at, "a count must be a whole number from 0 to {}", kMaxCount);
    return *count;
  }
  template <std::uint64_t Schema::*Member>
  Result<void> ReadCount(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(schema.*Member, CountOf(value, at));
    return base::Success();
  }
  Result<void> ReadMinLength(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::min_length>(s, value, at);
  }
  Result<void> ReadMaxLength(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::max_length>(s, value, at);
  }
  Result<void> ReadMinItems(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::min_items>(s, value, at);
  }
  Result<void> ReadMaxItems(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::max_items>(s, value, at);
  }
  Result<void> ReadMinProperties(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::min_properties>(s, value, at);
  }
  Result<void> ReadMaxProperties(Schema& s, const JsonValue& value, const JsonValue& at) {
    return ReadCount<&Schema::max_properties>(s, value, at);
  }

  Result<SharedDfa> PatternDfa(const std::string& regex, const JsonValue& at, RegexDialect dialect,
                               RegexMatch match) {
    const auto [place, added] = dfas_.emplace(std::pair(regex, match), nullptr);
    if (!added) return place->second;
    TermPool pool;
    const auto term = RegexTerm(pool, regex, dialect, match);
    if (!term) return Fail(at, "'{}': {}", regex, term.error().message);
    auto dfa = DfaOfTerm(pool, term.value());
    if (!dfa) return Fail(at, "'{}': {}", regex, dfa.error().message);
    place->second = std::make_shared<const CharDfa>(std::move(dfa).value());
    return place->second;
  }
  Result<void> ReadPattern(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_string()) return Fail(at, "pattern must be a string");
    KV_TRY(auto dfa, PatternDfa(value.text, at, RegexDialect::kEcma, RegexMatch::kSearch));
    schema.patterns.push_back(std::move(dfa));
    return base::Success();
  }
  Result<void> ReadFormat(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_string()) return Fail(at, "format must be a string");
    if (!options_.assert_formats) return base::Success();
    // Some are large: each is made once.
    static std::mutex mutex;
    static std::map<std::string, SharedDfa> known;
    const std::scoped_lock lock(mutex);
    SharedDfa& dfa = known[value.text];
    if (dfa == nullptr) {
      const auto regex = FormatRegex(value.text);
      if (!regex) {
        known.erase(value.text);
        return Fail(at,
                    "format '{}' cannot be asserted: date, time, date-time, uuid, email, uri "
                    "and ipv4 can",
                    value.text);
      }
      KV_TRY(dfa, PatternDfa(*regex, at, RegexDialect::kPlain, RegexMatch::kWhole));
    }
    schema.patterns.push_back(dfa);
    return base::Success();
  }

  Result<std::vector<SchemaId>> ListOf(const JsonValue& value, const JsonValue& at,
                                       std::string_view name) {
    if (!value.is_array() || value.items.empty()) {
      return Fail(at, "{} must be an array of at least one schema", name);
    }
    std::vector<SchemaId> ids;
    for (const JsonValue& item : value.items) ids.push_back(IdOf(item));
    return ids;
  }
  Result<void> ReadItems(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_array()) {
      schema.items = IdOf(value);
      return base::Success();
    }
    // Up to 2019-09: a list, and additionalItems for what comes after it.
    for (const JsonValue& item : value.items) schema.prefix_items.push_back(IdOf(item));
    const JsonValue* rest = at.Find("additionalItems");
    if (rest != nullptr) schema.items = IdOf(*rest);
    return base::Success();
  }
  Result<void> ReadPrefixItems(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(schema.prefix_items, ListOf(value, at, "prefixItems"));
    return base::Success();
  }
  Result<void> ReadUniqueItems(Schema&, const JsonValue& value, const JsonValue& at) {
    if (value.kind == JsonValue::Kind::kFalse) return base::Success();
    return Fail(at, "the keyword 'uniqueItems' is not supported");
  }
  Result<void> ReadContains(Schema& schema, const JsonValue& value, const JsonValue& at) {
    std::uint64_t least = 1;
    if (const JsonValue* min = at.Find("minContains")) {
      KV_TRY(least, CountOf(*min, at));
    }
    if (least > 1 || at.Find("maxContains") != nullptr) {
      return Fail(at, "the keywords 'minContains' above 1 and 'maxContains' are not supported");
    }
    if (least == 1) schema.contains.push_back(IdOf(value));
    return base::Success();
  }

  Result<void> ReadProperties(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_object()) return Fail(at, "properties must be an object");
    for (const auto& [name, member] : value.members) {
      schema.properties.emplace_back(name, IdOf(member));
    }
    return base::Success();
  }
  Result<void> ReadPatternProperties(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_object()) return Fail(at, "patternProperties must be an object");
    for (const auto& [regex, member] : value.members) {
      KV_TRY(auto dfa, PatternDfa(regex, at, RegexDialect::kEcma, RegexMatch::kSearch));
      schema.pattern_properties.emplace_back(std::move(dfa), IdOf(member));
    }
    return base::Success();
  }
  Result<void> ReadAdditional(Schema& schema, const JsonValue& value, const JsonValue&) {
    schema.additional = IdOf(value);
    return base::Success();
  }
  Result<void> ReadPropertyNames(Schema& schema, const JsonValue& value, const JsonValue&) {
    schema.property_names.push_back(IdOf(value));
    return base::Success();
  }
  Result<std::vector<std::string>> NamesOf(const JsonValue& value, const JsonValue& at) {
    std::vector<std::string> names;
    for (const JsonValue& item : value.items) {
      if (!item.is_string()) return Fail(at, "a list of names must hold strings only");
      names.push_back(item.text);
    }
    if (!value.is_array()) return Fail(at, "an array of names is needed");
    return names;
  }
  Result<void> ReadRequired(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (value.is_bool()) return base::Success();  // Draft 3, where it meant something else.
    KV_TRY(schema.required, NamesOf(value, at));
    return base::Success();
  }
  // If a member of that name is there, then what is said.
  Result<void> ReadDependencies(Schema& schema, const JsonValue& value, const JsonValue& at) {
    if (!value.is_object()) return Fail(at, "dependencies must be an object");
    for (const auto& [name, member] : value.members) {
      Schema has;
      has.types = TypeBit(JsonType::kObject);
      has.required = {name};
      SchemaId then = kTrueSchema;
      if (member.is_array()) {
        Schema needs;
        KV_TRY(needs.required, NamesOf(member, at));
        then = Add(std::move(needs));
      } else if (member.is_string()) {
        Schema needs;
        needs.required = {member.text};
        then = Add(std::move(needs));
      } else {
        then = IdOf(member);
      }
      schema.any_of.push_back({Not(Add(std::move(has))), then});
    }
    return base::Success();
  }

  Result<void> ReadAllOf(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(const auto all, ListOf(value, at, "allOf"));
    schema.all_of.insert(schema.all_of.end(), all.begin(), all.end());
    return base::Success();
  }
  Result<void> ReadAnyOf(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(auto any, ListOf(value, at, "anyOf"));
    schema.any_of.push_back(std::move(any));
    return base::Success();
  }
  Result<void> ReadOneOf(Schema& schema, const JsonValue& value, const JsonValue& at) {
    KV_TRY(schema.one_of, ListOf(value, at, "oneOf"));
    return base::Success();
  }
  Result<void> ReadNot(Schema& schema, const JsonValue& value, const JsonValue&) {
    schema.none_of.push_back(IdOf(value));
    return base::Success();
  }
  Result<void> ReadIf(Schema& schema, const JsonValue& value, const JsonValue& at) {
    const JsonValue* then = at.Find("then");
    const JsonValue* otherwise = at.Find("else");
    if (then != nullptr) schema.any_of.push_back({Not(IdOf(value)), IdOf(*then)});
    if (otherwise != nullptr) schema.any_of.push_back({IdOf(value), IdOf(*otherwise)});
    return base::Success();
  }

  const JsonValue& document_;
  const JsonSchemaOptions& options_;
  const SchemaReferences references_;
  Draft draft_;
  SchemaSet set_;
  boost::unordered_flat_map<const JsonValue*, SchemaId> ids_;
  std::vector<std::pair<const JsonValue*, SchemaId>> open_;
  std::map<std::pair<std::string, RegexMatch>, SharedDfa> dfas_;
};

}  // namespace

Result<SchemaSet> ReadSchema(const JsonValue& document, const JsonSchemaOptions& options) {
  return SchemaReader(document, options).Read();
}

}  // namespace kvasir::constraints
