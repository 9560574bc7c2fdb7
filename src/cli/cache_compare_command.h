// kvasir cache compare: registered by the cache command.
#ifndef KVASIR_CLI_CACHE_COMPARE_COMMAND_H_
#define KVASIR_CLI_CACHE_COMPARE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace kvasir::cli {

void AddCacheCompare(CLI::App* cache, CommandSet& commands);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_CACHE_COMPARE_COMMAND_H_
