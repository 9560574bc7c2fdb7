// The contract's floating-point state for as long as the library works on a caller's thread.
#ifndef KVASIR_API_FP_SCOPE_H_
#define KVASIR_API_FP_SCOPE_H_

#include <cfenv>

#include "base/fp_env.h"

namespace kvasir::api {

// A program may round otherwise or flush denormals (one object linked with -ffast-math is enough);
// that must not change an answer, nor may the library change it for the program.
class FpScope {
 public:
  FpScope() {
    std::fegetenv(&callers_);
    base::SetContractFpEnv();
  }
  ~FpScope() { std::fesetenv(&callers_); }
  FpScope(const FpScope&) = delete;
  FpScope& operator=(const FpScope&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace kvasir::api

#endif  // KVASIR_API_FP_SCOPE_H_
