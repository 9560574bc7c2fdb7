// Result<T>: a value or an Error. Bad input, I/O faults and exhausted limits travel this way; no
// exception crosses a folder.
#ifndef KVASIR_BASE_RESULT_H_
#define KVASIR_BASE_RESULT_H_

#include <fmt/format.h>

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>
#include <string>
#include <utility>

namespace kvasir::base {

enum class ErrorCode {
  kUsage,      // A flag, argument or setting that is not allowed: exit status 2, HTTP 400.
  kBadData,    // A file or text whose content is wrong: exit status 1.
  kIo,         // The system could not read or write: exit status 1.
  kExhausted,  // A budget (blocks, queue, memory) is used up: an ordinary result.
  kNumeric,    // A non-finite number where the contract needs a finite one: exit status 1.
  kCancelled,  // The caller or a signal asked to stop.
};

// What went wrong, for a person: one line that names the value and what is allowed.
struct Error {
  ErrorCode code = ErrorCode::kBadData;
  std::string message;  // One line, no trailing newline, without "error:".
  std::string hint;     // Empty, or one line that helps.
};

template <typename T>
using Result =
    BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Error,
                                             BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

inline auto Success() { return BOOST_OUTCOME_V2_NAMESPACE::success(); }

// Error with a formatted message: return MakeError(ErrorCode::kUsage, "top-p {} is not …", p);
template <typename... Args>
Error MakeError(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), {}};
}

inline Error WithHint(Error error, std::string hint) {
  error.hint = std::move(hint);
  return error;
}

}  // namespace kvasir::base

// KV_TRY(expr): return its Error, if it holds one. KV_TRY(auto x, expr): else bind its value.
#define KV_TRY(...) BOOST_OUTCOME_TRY(__VA_ARGS__)

#endif  // KVASIR_BASE_RESULT_H_
