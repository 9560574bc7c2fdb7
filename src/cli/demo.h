// The parts of the demo. Each prints one numbered section of the lesson.
#ifndef KVASIR_CLI_DEMO_H_
#define KVASIR_CLI_DEMO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/env.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "cli/command.h"
#include "cli/demo_texts.h"
#include "engine/generator.h"

namespace kvasir::cli {

// What all parts share. Borrowed parts must outlive it. Single-threaded.
struct Demo {
  const OpenModel& open;
  engine::GeneratorOptions options;
  DemoLanguage language;
  std::uint64_t seed = 0;
  std::string_view corpus;  // UTF-8; empty: there is none.
  // For section 6. One thread unless a number was asked for: a step of so small a model is too
  // short for a comparison to survive another program that wants the second core.
  base::ThreadTeam* timing_team = nullptr;

  const DemoTexts& texts() const { return DemoTextsOf(language); }
  std::string Integer(std::uint64_t value) const { return DemoInteger(language, value); }
  std::string Decimal(double value, int digits) const {
    return DemoDecimal(language, value, digits);
  }
};

// A heading; a paragraph of at most 80 columns; one indented line.
void PrintHeading(int number, std::string_view title);
void PrintParagraph(std::string_view text);
void PrintSample(std::string_view label, std::string_view text);

// Sections 1 to 5 (demo_lesson.cc). kUsage where the model does not fit the lesson.
base::Result<void> ShowNextTables(const Demo& demo);
base::Result<void> ShowTemperatures(const Demo& demo);
base::Result<void> ShowFilters(const Demo& demo);
base::Result<void> ShowOpenings(const Demo& demo);
base::Result<void> ShowForms(const Demo& demo);
// Section 6 (demo_cache.cc). True if every row of logits had the same bits with and without cache.
base::Result<bool> ShowCache(const Demo& demo);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_DEMO_H_
