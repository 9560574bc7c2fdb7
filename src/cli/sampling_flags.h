// Flags of every command that draws.
#ifndef KVASIR_CLI_SAMPLING_FLAGS_H_
#define KVASIR_CLI_SAMPLING_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/result.h"
#include "engine/request.h"
#include "sampling/sampling_options.h"

namespace kvasir::cli {

struct SamplingFlags {
  float temperature = 0.8f;
  std::uint64_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repeat_penalty = 1.0f;
  std::uint64_t count = 1;
  std::optional<std::uint64_t> seed;

  sampling::SamplingOptions options() const;
};

// --temperature, --top-k, --top-p, --min-p, --repeat-penalty, --count, --seed.
void AddSamplingFlags(CLI::App* command, SamplingFlags& flags);

// The settings as `generate --json` reports them.
nlohmann::ordered_json ToJson(const sampling::SamplingOptions& options);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_SAMPLING_FLAGS_H_
