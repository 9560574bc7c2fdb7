// kvasir bench masks.
#ifndef KVASIR_CLI_BENCH_MASKS_H_
#define KVASIR_CLI_BENCH_MASKS_H_

#include <string>

#include "base/result.h"
#include "cli/bench.h"

namespace kvasir::cli {

// Times the masks of four constraints over the vocabulary of a model file, one thread: the first
// visit of a state walks the vocabulary, later ones find the mask.
base::Result<int> RunBenchMasks(const BenchFlags& flags, const std::string& model);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_BENCH_MASKS_H_
