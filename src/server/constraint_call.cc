#include "server/constraint_call.h"

#include <fmt/format.h>

#include <utility>

namespace kvasir::server {
namespace {

using constraints::ConstraintKind;
using constraints::ConstraintSpec;

constexpr std::size_t kMaxChoiceTexts = 10000;

ApiError Fault(std::string_view name, std::string message, std::string code = "invalid_value") {
  return ApiError(400, std::move(message), std::string(name), std::move(code));
}

ApiResult<const JsonValue*> ObjectOf(const std::string& name, const JsonValue* value) {
  if (value != nullptr && value->is_object()) return value;
  return Fault(name,
               fmt::format("'{}' is {}: it must be an object", name,
                           value == nullptr ? "missing" : KindName(*value)),
               "invalid_type");
}

// {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"name",
// "schema", "description", "strict"}}.
ApiResult<void> ReadFormat(const JsonValue* value, CompletionCall& call) {
  KV_TRY(const JsonValue* const format, ObjectOf("response_format", value));
  const FieldReader fields(*format, "response_format.");
  KV_TRY(fields.Only({"type", "json_schema"}));
  KV_TRY(const auto type, fields.Text("type"));
  if (type == "text") return BOOST_OUTCOME_V2_NAMESPACE::success();
  if (type == "json_object") {
    call.constraint = ConstraintSpec{ConstraintKind::kJsonSchema, {R"({"type":"object"})"}};
    return BOOST_OUTCOME_V2_NAMESPACE::success();
  }
  if (type != "json_schema") {
    return Fault("response_format.type",
                 fmt::format("'response_format.type' is {}: it must be text, json_object or "
                             "json_schema",
                             type ? fmt::format("'{}'", type->substr(0, 64)) : "missing"));
  }
  KV_TRY(const JsonValue* const schema,
         ObjectOf("response_format.json_schema", fields.Find("json_schema")));
  const FieldReader inner(*schema, "response_format.json_schema.");
  KV_TRY(inner.Only({"name", "schema", "description", "strict"}));
  KV_TRY(inner.Text("name"));
  KV_TRY(inner.Text("description"));
  KV_TRY(inner.Bool("strict"));
  const JsonValue* content = inner.Find("schema");
  call.constraint =
      ConstraintSpec{ConstraintKind::kJsonSchema, {content == nullptr ? "{}" : DumpJson(*content)}};
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

ApiResult<void> ReadVerse(const JsonValue* value, CompletionCall& call) {
  KV_TRY(const JsonValue* const object, ObjectOf("verse", value));
  const FieldReader fields(*object, "verse.");
  KV_TRY(fields.Only({"form", "heads", "chars", "tones", "rhyme", "rhyme_group", "without"}));
  VerseCall verse;
  KV_TRY(auto form, fields.Text("form"));
  if (!form) {
    return Fault("verse.form",
                 "'verse.form' is missing: it must be wujue, qijue, wulv, qilv or acrostic",
                 "missing_parameter");
  }
  verse.form = std::move(*form);
  KV_TRY(verse.heads, fields.Text("heads"));
  KV_TRY(const auto chars, fields.Whole("chars", {5, 7}));
  const bool acrostic = verse.form == "acrostic";
  if (chars && (!acrostic || *chars == 6)) {
    return Fault("verse.chars", "'verse.chars' must be 5 or 7, and only of an acrostic");
  }
  if (acrostic && !verse.heads) {
    return Fault("verse.heads", "'verse.heads' is missing: an acrostic needs them",
                 "missing_parameter");
  }
  verse.chars = chars.value_or(7);
  KV_TRY(const auto tones, fields.Bool("tones"));
  KV_TRY(const auto rhyme, fields.Bool("rhyme"));
  KV_TRY(verse.rules.rhyme_group, fields.Text("rhyme_group"));
  KV_TRY(verse.rules.without, fields.Texts("without", 16));
  verse.rules.tones = tones.value_or(false);
  verse.rules.rhyme = rhyme.value_or(false);
  call.verse = std::move(verse);
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

}  // namespace

ApiResult<void> ReadConstraint(const FieldReader& fields, CompletionCall& call) {
  std::string_view given;
  for (const char* name : {"response_format", "regex", "grammar", "choice", "verse"}) {
    const JsonValue* value = fields.Find(name);
    if (value == nullptr) continue;
    const JsonValue* type = value->Find("type");
    if (type != nullptr && type->text == "text") continue;  // Asks for nothing.
    if (!given.empty()) {
      return Fault(name, fmt::format("'{}' and '{}' are both given: only one constraint is allowed",
                                     given, name));
    }
    given = name;
  }
  if (const JsonValue* format = fields.Find("response_format"); format != nullptr) {
    KV_TRY(ReadFormat(format, call));
  }
  KV_TRY(auto regex, fields.Text("regex"));
  if (regex) call.constraint = ConstraintSpec{ConstraintKind::kRegex, {std::move(*regex)}};
  KV_TRY(auto grammar, fields.Text("grammar"));
  if (grammar) call.constraint = ConstraintSpec{ConstraintKind::kGrammar, {std::move(*grammar)}};
  KV_TRY(auto choice, fields.Texts("choice", kMaxChoiceTexts));
  if (!choice.empty()) call.constraint = ConstraintSpec{ConstraintKind::kChoices, choice};
  if (const JsonValue* verse = fields.Find("verse"); verse != nullptr) {
    KV_TRY(ReadVerse(verse, call));
  }
  return BOOST_OUTCOME_V2_NAMESPACE::success();
}

}  // namespace kvasir::server
