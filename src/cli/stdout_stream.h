// Writing to the standard output, where a full disk or a reader that went away is an Error.
#ifndef KVASIR_CLI_STDOUT_STREAM_H_
#define KVASIR_CLI_STDOUT_STREAM_H_

#include "base/result.h"

namespace kvasir::cli {

// Hands on what was printed so far; kIo if that cannot be done.
base::Result<void> FlushStdout();

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_STDOUT_STREAM_H_
