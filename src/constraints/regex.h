// Regular expressions, as terms. The dialect is in docs/constraints.md.
#ifndef KVASIR_CONSTRAINTS_REGEX_H_
#define KVASIR_CONSTRAINTS_REGEX_H_

#include <string_view>

#include "base/result.h"
#include "constraints/grammar.h"

namespace kvasir::constraints {

enum class RegexDialect {
  kPlain,  // `.` is any character but a newline; \d \w \s are those of ASCII.
  kEcma,  // ECMA-262 with the u flag, as JSON Schema asks: `.` is none of four line ends, \s is any
          // Unicode blank.
};

enum class RegexMatch {
  kWhole,   // The text is what the expression describes.
  kSearch,  // The text holds it somewhere.
};

// The texts of an expression; kNothingTerm if there are none. Errors are kUsage and name the place
// (in bytes from 0) and what is not allowed there: bad syntax, what this dialect does not have
// (backreferences, \b, most lookaround, flags), and what is above the limits of grammar.h.
base::Result<TermId> RegexTerm(TermPool& pool, std::string_view regex, RegexDialect dialect,
                               RegexMatch match);

// A grammar of exactly the texts that match the expression as a whole.
base::Result<Grammar> CompileRegex(std::string_view regex);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_REGEX_H_
