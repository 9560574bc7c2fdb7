// The version of the numerics contract that the kernels keep.
#ifndef KVASIR_KERNELS_CONTRACT_H_
#define KVASIR_KERNELS_CONTRACT_H_

namespace kvasir::kernels {

// Changes when any bit may (docs/numerics.md). Part of the name of everything stored.
inline constexpr int kContractVersion = 1;

}  // namespace kvasir::kernels

#endif  // KVASIR_KERNELS_CONTRACT_H_
