// JSON Schema 2020-12 as a constraint: the JSON texts that a schema accepts, exactly. What is
// supported and what is refused is in docs/constraints.md.
#ifndef KVASIR_CONSTRAINTS_JSON_SCHEMA_H_
#define KVASIR_CONSTRAINTS_JSON_SCHEMA_H_

#include <string_view>

#include "base/result.h"
#include "constraints/grammar.h"

namespace kvasir::constraints {

struct JsonSchemaOptions {
  // `format` is enforced (date, time, date-time, uuid, email, uri, ipv4; others are refused). Else
  // it is an annotation, as the specification has it.
  bool assert_formats = false;
  // One spelling for each value, but for the order of members: no blanks outside strings, numbers
  // and strings plain (NumberSpelling, StringSpelling). Else all spellings that JSON allows.
  bool compact = false;
  // Blanks before and after the whole value, too: a text is then never complete, only allowed to
  // end. For judging texts; generation ends with the value.
  bool outer_blanks = false;
};

// A grammar of exactly the texts of the values that the schema accepts, whatever the order of
// members, the spelling of strings (escapes) and of numbers (1.0, 10e-1). In an object a member
// that the schema names comes at most once. Errors are kUsage: text that is no JSON or no schema,
// an unresolvable reference, a keyword that asserts something but is not supported (by name and
// place), a schema that nothing satisfies, and what is above the limits.
base::Result<Grammar> CompileJsonSchema(std::string_view text, const JsonSchemaOptions& options);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_JSON_SCHEMA_H_
