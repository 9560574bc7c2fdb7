// The floating-point state the numerics contract needs (R5): round to nearest even, no
// flush-to-zero, no denormals-are-zero.
#ifndef KVASIR_BASE_FP_ENV_H_
#define KVASIR_BASE_FP_ENV_H_

#include "base/result.h"

namespace kvasir::base {

// Puts the calling thread into the contract's floating-point state.
void SetContractFpEnv();

// kNumeric if the calling thread rounds otherwise or flushes denormals.
Result<void> CheckFpEnv();

}  // namespace kvasir::base

#endif  // KVASIR_BASE_FP_ENV_H_
