// Unicode's classes of characters by the names that \p{…} uses.
#ifndef KVASIR_CONSTRAINTS_UNICODE_CLASS_H_
#define KVASIR_CONSTRAINTS_UNICODE_CLASS_H_

#include <string_view>

#include "constraints/code_point_set.h"

namespace kvasir::constraints {

// The characters of a general category by its short name (L, Lu, Nd, …; UAX #44, table 12), of
// Any, or of Han, as verse counts Han characters (han_character.h). Null for other names. Made by
// a walk over all characters at the first use, then kept. Thread-safe.
const CodePointSet* FindUnicodeClass(std::string_view name);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_UNICODE_CLASS_H_
