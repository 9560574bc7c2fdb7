#include "base/fp_env.h"

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kvasir::base {

void SetContractFpEnv() {
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#endif
}

Result<void> CheckFpEnv() {
  if (std::fegetround() != FE_TONEAREST) {
    return MakeError(ErrorCode::kNumeric, "this thread does not round to nearest even");
  }
  // Asks the hardware itself rather than a control register, so it works on every processor.
  volatile float denormal = 1e-40f;
  volatile float half = 0.5f;
  if (denormal * half == 0.0f || denormal + 0.0f == 0.0f) {
    return MakeError(ErrorCode::kNumeric, "this thread flushes denormal numbers to zero");
  }
  return Success();
}

}  // namespace kvasir::base
