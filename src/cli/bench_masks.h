// kvasir bench masks.
#ifndef KVASIR_CLI_BENCH_MASKS_H_
#define KVASIR_CLI_BENCH_MASKS_H_

#include <string>

#include "base/result.h"
#include "cli/bench.h"

namespace kvasir::cli {

// Times the masks of constraints over the vocabulary of a model file, one thread: the first visit
// of a state walks the vocabulary, later ones find the mask. Of four constraints along random
// texts; with --schemas of every schema in a folder along its instances (schema_folder.h). Times
// are the thread's own, so other programs do not count.
base::Result<int> RunBenchMasks(const BenchFlags& flags, const std::string& model);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_BENCH_MASKS_H_
