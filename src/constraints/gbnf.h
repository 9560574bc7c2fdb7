// Grammars in GBNF, the notation of llama.cpp's users. The dialect is in docs/constraints.md.
#ifndef KVASIR_CONSTRAINTS_GBNF_H_
#define KVASIR_CONSTRAINTS_GBNF_H_

#include <string_view>

#include "base/result.h"
#include "constraints/grammar.h"

namespace kvasir::constraints {

// A grammar of exactly what the rule `root` stands for. Errors are kUsage and name the place (in
// bytes from 0) or the rule: bad syntax, a rule that is not defined or defined twice, no root, left
// recursion, a root that stands for nothing, and what is above the limits of grammar.h.
base::Result<Grammar> CompileGbnf(std::string_view text);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_GBNF_H_
