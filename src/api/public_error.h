// From what the layers return to what the library's callers see.
#ifndef KVASIR_API_PUBLIC_ERROR_H_
#define KVASIR_API_PUBLIC_ERROR_H_

#include <new>
#include <utility>

#include "base/result.h"
#include "kvasir/result.h"

namespace kvasir::api {

Error PublicError(const base::Error& error);

// The result of body(), a base::Result<T>, as Result<T>. Where memory runs out: kExhausted.
template <typename Body>
auto PublicResult(Body&& body)
    -> Result<typename decltype(std::forward<Body>(body)())::value_type> {
  try {
    auto result = std::forward<Body>(body)();
    if (!result) return PublicError(result.error());
    return std::move(result).value();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kExhausted, "out of memory", {}};
  }
}

}  // namespace kvasir::api

#endif  // KVASIR_API_PUBLIC_ERROR_H_
