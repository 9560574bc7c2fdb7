// The constraints that a request may ask for.
#ifndef KVASIR_SERVER_CONSTRAINT_CALL_H_
#define KVASIR_SERVER_CONSTRAINT_CALL_H_

#include "server/completion_call.h"

namespace kvasir::server {

// response_format, regex, grammar, choice and verse, of which one at most may be given, into
// call.constraint or call.verse. ApiError 400 naming the parameter; what a constraint says is not
// compiled here.
ApiResult<void> ReadConstraint(const FieldReader& fields, CompletionCall& call);

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_CONSTRAINT_CALL_H_
