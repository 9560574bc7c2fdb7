// Configuration files: flags of a command, one a line.
#ifndef KVASIR_CLI_CONFIG_FILE_H_
#define KVASIR_CLI_CONFIG_FILE_H_

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace kvasir::cli {

// Gives the command's options the values that the file's lines name: "port = 8080" is --port 8080;
// a flag without a value is true or false. Empty lines and lines that begin with # are left out.
// What was given on the command line stays. kIo; kUsage naming file and line for what is no such
// line, no option of the command, given twice, or a value that the option refuses.
base::Result<void> ApplyConfigFile(CLI::App* command, const std::string& path);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_CONFIG_FILE_H_
