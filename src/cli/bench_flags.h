// Which flags a kind of `kvasir bench` takes, and which shapes of random weights it can run.
#ifndef KVASIR_CLI_BENCH_FLAGS_H_
#define KVASIR_CLI_BENCH_FLAGS_H_

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/bench.h"

namespace kvasir::cli {

// kUsage naming the flag: one that the kind, the architecture or a model file makes meaningless, or
// a shape that cannot be run. `command` says which flags were given.
base::Result<void> CheckBenchFlags(const CLI::App& command, const BenchFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_BENCH_FLAGS_H_
