// What follows a backslash in a regular expression.
#ifndef KVASIR_CONSTRAINTS_REGEX_ESCAPES_H_
#define KVASIR_CONSTRAINTS_REGEX_ESCAPES_H_

#include "base/result.h"
#include "constraints/code_point_set.h"
#include "constraints/regex.h"
#include "constraints/text_cursor.h"

namespace kvasir::constraints {

// The characters that the escape at the cursor stands for, which goes past it. Requires a backslash
// there. kUsage, by name, for escapes that the dialect lacks and for what is no character.
base::Result<CodePointSet> ParseRegexEscape(TextCursor& cursor, RegexDialect dialect,
                                            bool in_class);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_REGEX_ESCAPES_H_
