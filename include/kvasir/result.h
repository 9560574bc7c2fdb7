// Result<T>: a value, or an Error that says why there is none.
#ifndef KVASIR_RESULT_H_
#define KVASIR_RESULT_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "kvasir/version.h"

namespace kvasir {

enum class ErrorCode {
  kUsage = 1,      // A setting or argument that is not allowed.
  kBadData = 2,    // A file or text whose content is wrong.
  kIo = 3,         // The system could not read or write.
  kExhausted = 4,  // Memory or another budget is used up.
  kNumeric = 5,    // A number that is not finite, or a processor that cannot keep the contract.
  kCancelled = 6,  // Whoever asked, asked to stop.
};

// For a person: one line that names the value and what is allowed.
struct Error {
  ErrorCode code = ErrorCode::kBadData;
  std::string message;
  std::string hint;  // Empty, or one line that helps.
};

// What Result::value throws where there is none. Nothing else in this library throws, but for what
// a caller's own callback throws, and std::bad_alloc where results are copied.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error)
      : std::runtime_error(error.hint.empty() ? error.message
                                              : error.message + " (" + error.hint + ")"),
        error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// Either has a value or an error. Reading one where the other is: value() throws Exception, * and
// -> and error() are undefined.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  T value() && { return std::move(Checked()); }

  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  T& Checked() {
    if (!has_value()) throw Exception(error());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

}  // namespace kvasir

#endif  // KVASIR_RESULT_H_
