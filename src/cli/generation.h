// What generate, acrostic and verse share: from flags to a run, from a run to stdout.
#ifndef KVASIR_CLI_GENERATION_H_
#define KVASIR_CLI_GENERATION_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/sampling_flags.h"
#include "engine/generator.h"
#include "engine/request.h"

namespace kvasir::cli {

// --kv-budget, of commands that write many texts.
void AddKvBudgetFlag(CLI::App* command, ModelFlags& flags);

engine::GeneratorOptions GeneratorOptionsOf(const OpenModel& open, const ModelFlags& flags);

// The tokens of a prompt that was typed as an argument: what is not UTF-8 is kUsage.
base::Result<std::vector<base::TokenId>> TokensOfArgument(const OpenModel& open,
                                                          const std::string& text,
                                                          std::string_view what);

// The seed of this run; a random one is told on stderr.
std::uint64_t SeedOfRun(const SamplingFlags& flags);

struct Generation {
  std::uint64_t seed = 0;
  nlohmann::ordered_json settings;  // What was asked, besides the arrangement of the work.
  std::vector<engine::GenerateRequest> requests;
};

// Runs all requests in one batch. With trace, what each step did goes to stderr.
base::Result<engine::GenerateReport> RunGeneration(const OpenModel& open, const ModelFlags& flags,
                                                   const Generation& generation, bool trace,
                                                   engine::Observer observer = {});
// The same on a generator that the caller keeps.
base::Result<engine::GenerateReport> RunGeneration(engine::Generator& generator,
                                                   const OpenModel& open,
                                                   const Generation& generation, bool trace,
                                                   engine::Observer observer = {});

// The whole document (`generate` in the design's JSON shapes). Choices follow each other by prompt,
// then by index.
nlohmann::ordered_json ToJson(const OpenModel& open, const ModelFlags& flags,
                              const Generation& generation, const engine::GenerateReport& report);
// {"token", "id", "logprob", "top"}: a token with its alternatives.
nlohmann::ordered_json ToJson(const OpenModel& open, const engine::GeneratedToken& token);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_GENERATION_H_
