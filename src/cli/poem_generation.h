// Poems of a fixed form: what acrostic and verse share.
#ifndef KVASIR_CLI_POEM_GENERATION_H_
#define KVASIR_CLI_POEM_GENERATION_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"
#include "cli/generation.h"
#include "cli/sampling_flags.h"
#include "constraints/constraint.h"
#include "engine/request.h"

namespace kvasir::cli {

struct PoemFlags {
  ModelFlags model;
  SamplingFlags sampling;
  bool trace = false;
  bool json = false;
};

void AddPoemFlags(CLI::App* command, PoemFlags& flags);

// A request for poems that the form holds to, from the start of a text. kUsage if the form does not
// fit the model's context: a poem is whole or not begun.
base::Result<engine::GenerateRequest> PoemRequest(const OpenModel& open,
                                                  const SamplingFlags& sampling,
                                                  std::unique_ptr<constraints::Matcher> form);

// Runs it and prints the poems, or the document with `settings` added to its settings. A poem is
// one line, or with line_breaks one line of verse a line and an empty line between poems.
base::Result<int> RunPoems(const OpenModel& open, const PoemFlags& flags,
                           std::unique_ptr<constraints::Matcher> form,
                           const nlohmann::ordered_json& settings, bool line_breaks);

// The text with a newline after each ， and 。 but the last.
std::string BreakVerseLines(std::string_view poem);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_POEM_GENERATION_H_
