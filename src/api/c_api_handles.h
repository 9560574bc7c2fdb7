// What the handles of c_api.h hold.
#ifndef KVASIR_API_C_API_HANDLES_H_
#define KVASIR_API_C_API_HANDLES_H_

#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/c_api.h"
#include "kvasir/kvasir.h"

struct kvasir_error {
  kvasir::Error error;
};
struct kvasir_model {
  kvasir::Model model;
};
struct kvasir_settings {
  kvasir::SessionOptions options;
};
struct kvasir_session {
  kvasir::Session session;
};
struct kvasir_request {
  kvasir::Request request;
};
struct kvasir_answer {
  kvasir::Answer answer;
};
struct kvasir_tokens {
  std::vector<kvasir::TokenId> ids;
};

namespace kvasir::api {

// A caller may pass null for an empty text.
inline std::string TextOf(const char* text) { return text != nullptr ? text : ""; }

// Sets *error, if there is somewhere to. Where no memory is left for it, it stays as it was.
inline void TellError(kvasir_error** error, Error what) {
  if (error == nullptr) return;
  if (auto* made = new (std::nothrow) kvasir_error{std::move(what)}; made != nullptr) *error = made;
}

// What body() returns; or, where it throws, `failed` and *error. So nothing is thrown into C.
template <typename Value, typename Body>
Value Guarded(kvasir_error** error, Value failed, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Exception& exception) {
    TellError(error, exception.error());
  } catch (const std::bad_alloc&) {
    TellError(error, {ErrorCode::kExhausted, "out of memory", {}});
  } catch (const std::exception& exception) {
    TellError(error, {ErrorCode::kExhausted, exception.what(), {}});
  }
  return failed;
}

}  // namespace kvasir::api

#endif  // KVASIR_API_C_API_HANDLES_H_
