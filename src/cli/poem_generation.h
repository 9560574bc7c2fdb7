// Poems of a fixed form: what acrostic and verse share.
#ifndef KVASIR_CLI_POEM_GENERATION_H_
#define KVASIR_CLI_POEM_GENERATION_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/generation.h"
#include "cli/sampling_flags.h"
#include "constraints/constraint.h"
#include "constraints/verse_rules.h"
#include "engine/request.h"

namespace kvasir::cli {

struct PoemFlags {
  ModelFlags model;
  SamplingFlags sampling;
  constraints::VerseRequest rules;
  std::uint64_t best_of = 1;  // Poems drawn for each one shown.
  std::uint64_t beam = 0;     // Width of a beam search instead of draws; 0: none.
  std::string corpus;         // A text in which to look for runs of a poem; empty: none.
  bool trace = false;
  bool json = false;
};

// Those of AddModelFlags and AddSamplingFlags, --tones, --rhyme, --rhyme-group, --without,
// --best-of, --beam, --corpus, --trace, --json.
void AddPoemFlags(CLI::App* command, PoemFlags& flags);

// A request for sampling.count × best_of poems that the form holds to, from the start of a text.
// kUsage if the form does not fit the model's context (a poem is whole or not begun), or for too
// many poems.
base::Result<engine::GenerateRequest> PoemRequest(const OpenModel& open,
                                                  const SamplingFlags& sampling,
                                                  std::unique_ptr<constraints::Matcher> form,
                                                  std::uint64_t best_of = 1);

// Runs it and prints the poems, or the document with `settings` added to its settings. A poem is
// one line, or with line_breaks one line of verse a line and an empty line between poems. Of each
// poem the longest run that stands in flags.corpus is told, if there is one.
base::Result<int> RunPoems(const OpenModel& open, const PoemFlags& flags,
                           std::unique_ptr<constraints::Matcher> form,
                           const nlohmann::ordered_json& settings, bool line_breaks);

// The text with a newline after each ， and 。 but the last.
std::string BreakVerseLines(std::string_view poem);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_POEM_GENERATION_H_
