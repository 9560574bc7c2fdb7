// The constraints a person can ask for, as flags: of generate and of check.
#ifndef KVASIR_CLI_CONSTRAINT_FLAGS_H_
#define KVASIR_CLI_CONSTRAINT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "constraints/constraint_compiler.h"

namespace kvasir::cli {

struct ConstraintFlags {
  std::optional<std::string> regex;
  std::optional<std::string> json_schema;  // file
  std::optional<std::string> grammar;      // file
  std::vector<std::string> choices;
  std::string formats = "annotate";
  std::string layout = "any";
  std::optional<std::uint64_t> memory;  // Bytes.
};

void AddConstraintFlags(CLI::App* command, ConstraintFlags& flags);

// What the flags ask for; nothing if none is given. kUsage for two at once, kIo for a file that
// cannot be read.
base::Result<std::optional<constraints::ConstraintSpec>> ConstraintOf(const ConstraintFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_CONSTRAINT_FLAGS_H_
