#include "cli/stdout_stream.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace kvasir::cli {

base::Result<void> FlushStdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    return base::MakeError(base::ErrorCode::kIo, "cannot write to the standard output: {}",
                           std::generic_category().message(errno));
  }
  return base::Success();
}

}  // namespace kvasir::cli
