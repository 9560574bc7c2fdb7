// Checks for programmer errors. Bad input never reaches these: it becomes an Error (result.h).
#ifndef KVASIR_BASE_CHECK_H_
#define KVASIR_BASE_CHECK_H_

namespace kvasir::base {

// Prints "file:line: check failed: expression" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace kvasir::base

// Always on, in release builds too.
#define KV_CHECK(condition)                                        \
  do {                                                             \
    if (!(condition)) [[unlikely]] {                               \
      ::kvasir::base::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                              \
  } while (false)

// For checks inside hot loops: debug builds only.
#ifdef NDEBUG
#define KV_DCHECK(condition) \
  do {                       \
    (void)sizeof(condition); \
  } while (false)
#else
#define KV_DCHECK(condition) KV_CHECK(condition)
#endif

#endif  // KVASIR_BASE_CHECK_H_
