// The flags of generate.
#ifndef KVASIR_CLI_GENERATE_FLAGS_H_
#define KVASIR_CLI_GENERATE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/constraint_flags.h"
#include "cli/prompt_source.h"
#include "cli/sampling_flags.h"
#include "cli/store_flags.h"

namespace kvasir::cli {

// Files; empty: none.
struct SessionFlags {
  std::string save;
  std::string load;
};

struct GenerateFlags {
  ModelFlags model;
  ConstraintFlags constraint;
  SamplingFlags sampling;
  PromptFlags prompt;
  std::uint64_t max_tokens = 64;
  std::string overflow = "stop";
  std::vector<std::string> stops;
  std::vector<std::string> bans;
  std::optional<std::uint64_t> eos;
  std::optional<std::uint64_t> logprobs;
  std::uint64_t best_of = 1;
  bool ignore_eos = false;
  bool echo = false;
  bool stream = false;
  bool trace = false;
  bool interactive = false;
  bool json = false;
  StoreFlags store;
  SessionFlags session;
};

// Those that say how a text goes on: what -i may change from turn to turn.
void AddTurnFlags(CLI::App* command, GenerateFlags& flags);
// All of them.
void AddGenerateFlags(CLI::App* command, GenerateFlags& flags);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_GENERATE_FLAGS_H_
