// Flags and arguments whose values are texts, taken as they are.
#ifndef KVASIR_CLI_TEXT_FLAGS_H_
#define KVASIR_CLI_TEXT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kvasir::cli {

// A flag that may be repeated, each time with one text; or, named without dashes, arguments that
// are one text each. CLI11 takes lists like "[a,b]" apart; here every text arrives whole.
CLI::Option* AddTexts(CLI::App* command, const std::string& flags, std::vector<std::string>& texts,
                      const std::string& help);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TEXT_FLAGS_H_
