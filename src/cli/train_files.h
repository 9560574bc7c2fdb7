// The files a training run reads and writes: that no output is lost or overwrites an input.
#ifndef KVASIR_CLI_TRAIN_FILES_H_
#define KVASIR_CLI_TRAIN_FILES_H_

#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::cli {

struct TrainPaths {
  std::vector<std::string> texts;
  std::string held_out = {};  // Empty: none.
  std::string output;         // The model.
  std::string log;
  std::string checkpoint = {};  // The folder; empty: none.
  std::string report = {};      // Likewise.
  std::string init = {};        // The model to go on from; empty: none.
};

// Names of files in the folder of a report.
std::string TrainReportPath(const std::string& folder);
std::string TrainPlotPath(const std::string& folder);
std::string TrainSamplesPath(const std::string& folder);

// kUsage naming both if an output is an input or another output, by whatever names or links.
base::Result<void> CheckDistinct(const TrainPaths& paths);

// kIo unless a file can be put at this path (a regular one may be there), as WriteFileAtomic will
// hours later. Leaves nothing behind.
base::Result<void> CheckWritable(const std::string& path);

// Hours later would be too late to learn that an output cannot be written. Makes the checkpoint's
// folder, and removes stale temporaries. kUsage for a checkpoint that would be lost, kIo for one to
// resume from that is not there, and as CheckWritable.
base::Result<void> PrepareTrainFiles(base::Env& env, const TrainPaths& paths, bool resume);

// Removes what WriteFileAtomic left beside this path in processes that were killed meanwhile.
void RemoveStaleTemporaries(const std::string& path);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_FILES_H_
