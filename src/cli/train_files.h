// The files a training run reads and writes: that no output is lost or overwrites an input.
#ifndef KVASIR_CLI_TRAIN_FILES_H_
#define KVASIR_CLI_TRAIN_FILES_H_

#include <string>
#include <vector>

#include "base/result.h"

namespace kvasir::cli {

struct TrainPaths {
  std::vector<std::string> texts;
  std::string held_out;  // Empty: none.
  std::string output;    // The model.
  std::string log;
  std::string checkpoint;  // The folder; empty: none.
};

// kUsage naming both if an output is an input or another output, by whatever names or links.
base::Result<void> CheckDistinct(const TrainPaths& paths);

// kIo unless a file can be put at this path (a regular one may be there), as WriteFileAtomic will
// hours later. Leaves nothing behind.
base::Result<void> CheckWritable(const std::string& path);

// Removes what WriteFileAtomic left beside this path in processes that were killed meanwhile.
void RemoveStaleTemporaries(const std::string& path);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_FILES_H_
