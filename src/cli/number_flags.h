// Flags whose value is a number, read strictly: the whole text must be a number in the range.
#ifndef KVASIR_CLI_NUMBER_FLAGS_H_
#define KVASIR_CLI_NUMBER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kvasir::cli {

struct UintRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

// Both ends belong to the range unless they are open.
struct FloatRange {
  double min = 0;
  double max = std::numeric_limits<float>::max();
  bool min_open = false;
};

// The number that is the whole of text: no sign, blank, exponent or fraction. kUsage naming what,
// the text and the range.
base::Result<std::uint64_t> ParseUint(std::string_view what, std::string_view text,
                                      UintRange range = {});

// A number of bytes: a whole number, alone or followed at once by KiB, MiB, GiB, TiB (powers of
// 1024) or kB, MB, GB, TB (powers of 1000). The range is of bytes.
base::Result<std::uint64_t> ParseBytes(std::string_view what, std::string_view text,
                                       UintRange range = {});

// A finite decimal number, as JSON writes them. NaN, infinity, hexadecimal and blanks are refused;
// so is a number too large for a double (1e400). One too small is 0.
base::Result<double> ParseFloat(std::string_view what, std::string_view text, FloatRange range);

// Adds an option that fills value; a refused text is a CLI::ValidationError with the message above.
CLI::Option* AddUint(CLI::App* command, const std::string& flags, std::uint64_t& value,
                     UintRange range, const std::string& help);
CLI::Option* AddUint(CLI::App* command, const std::string& flags,
                     std::optional<std::uint64_t>& value, UintRange range, const std::string& help);
// The same for ParseBytes.
CLI::Option* AddBytes(CLI::App* command, const std::string& flags,
                      std::optional<std::uint64_t>& value, UintRange range,
                      const std::string& help);
// Several, separated by commas: 512,4096.
CLI::Option* AddUints(CLI::App* command, const std::string& flags,
                      std::vector<std::uint64_t>& values, UintRange range, const std::string& help);
CLI::Option* AddFloat(CLI::App* command, const std::string& flags, float& value, FloatRange range,
                      const std::string& help);
CLI::Option* AddFloat(CLI::App* command, const std::string& flags, double& value, FloatRange range,
                      const std::string& help);
CLI::Option* AddFloat(CLI::App* command, const std::string& flags, std::optional<double>& value,
                      FloatRange range, const std::string& help);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_NUMBER_FLAGS_H_
