// generate --save-session and --load-session: a text laid aside, and gone on with.
#ifndef KVASIR_CLI_GENERATE_SESSION_H_
#define KVASIR_CLI_GENERATE_SESSION_H_

#include <CLI/CLI.hpp>
#include <optional>

#include "base/result.h"
#include "cli/generate_flags.h"
#include "cli/generation.h"
#include "constraints/constraint_compiler.h"
#include "engine/generator.h"
#include "store/session_file.h"

namespace kvasir::cli {

void AddSessionFlags(CLI::App* command, SessionFlags& flags);

// kUsage for flags of this command that do not go with a session: those that ask for several texts
// and, where one is loaded, those that are part of it.
base::Result<void> CheckSessionFlags(const CLI::App* command, const GenerateFlags& flags);

// What the sessions of this model and cache must be of. kIo if the model file cannot be read again.
base::Result<store::SessionModel> SessionModelOf(const GenerateFlags& flags, const OpenModel& open);

// A loaded session as a run: its settings and text, with its own flags' number of tokens.
struct SessionGeneration {
  Generation generation;
  std::optional<constraints::ConstraintSpec> constraint;
  store::SessionBlocks blocks = {};
};
// Errors as store::ReadSession has them; kBadData for settings or tokens that the model lacks.
base::Result<SessionGeneration> LoadSession(const GenerateFlags& flags, const OpenModel& open,
                                            const store::SessionModel& model);

// Writes what the run has come to, with the blocks that the generator still has.
base::Result<void> SaveSession(const GenerateFlags& flags, const OpenModel& open,
                               const store::SessionModel& model,
                               const std::optional<constraints::ConstraintSpec>& constraint,
                               const engine::GenerateRequest& request,
                               const engine::GenerateReport& report, engine::Generator& generator);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_GENERATE_SESSION_H_
