// From the TEXT arguments of a training run to the files they mean, and their contents.
#ifndef KVASIR_CLI_TRAIN_TEXTS_H_
#define KVASIR_CLI_TRAIN_TEXTS_H_

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kvasir::cli {

// Each argument is a file, kept as it is, or a folder, which becomes the regular files in it and in
// the folders below it, sorted by path, byte by byte: the same files in the same order wherever the
// folder lies. What begins with a dot is left out, and so are empty files; links to files are
// followed, links to folders are not. kBadData for a folder without a file, kIo for one that cannot
// be read, kUsage for more than 100,000 files.
base::Result<std::vector<std::string>> ExpandTexts(std::span<const std::string> arguments);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_TEXTS_H_
