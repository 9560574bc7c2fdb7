// The values of `format` that can be enforced.
#ifndef KVASIR_CONSTRAINTS_SCHEMA_FORMAT_H_
#define KVASIR_CONSTRAINTS_SCHEMA_FORMAT_H_

#include <optional>
#include <string>
#include <string_view>

namespace kvasir::constraints {

// A whole-match regular expression (kPlain) of a format's strings: date, time, date-time (RFC 3339,
// days of each month, leap years and leap seconds), uuid (RFC 4122), email (RFC 5321 without
// comments), uri (RFC 3986), ipv4 (RFC 2673 §3.2). Nothing for other names.
std::optional<std::string> FormatRegex(std::string_view name);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_SCHEMA_FORMAT_H_
