// From the flags of generate to the engine's requests.
#ifndef KVASIR_CLI_GENERATE_REQUEST_H_
#define KVASIR_CLI_GENERATE_REQUEST_H_

#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/generate_flags.h"
#include "cli/generation.h"
#include "cli/prompt_source.h"

namespace kvasir::cli {

// A request for each prompt, checked. Tells on stderr a seed that it had to draw, once nothing is
// left that can be refused. kUsage for flags, kBadData for a line of a file.
base::Result<Generation> MakeGeneration(const GenerateFlags& flags, const OpenModel& open,
                                        const std::vector<Prompt>& prompts);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_GENERATE_REQUEST_H_
