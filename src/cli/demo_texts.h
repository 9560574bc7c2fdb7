// What the demo says, in three languages.
#ifndef KVASIR_CLI_DEMO_TEXTS_H_
#define KVASIR_CLI_DEMO_TEXTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kvasir::cli {

enum class DemoLanguage { kEnglish, kGerman, kChinese };

// "en", "de" or "zh"; kUsage naming the three.
base::Result<DemoLanguage> ParseDemoLanguage(std::string_view code);

// Texts with {} are formats; which values they take stands beside each. Numbers arrive as texts in
// the language's own form.
struct DemoTexts {
  std::string_view title;
  std::string_view model;  // layers, width, heads, context, vocabulary, parameters
  std::string_view seed;   // seed
  std::string_view no_corpus;
  std::string_view corpus;  // file, poems, characters

  std::string_view next_title;
  std::string_view next_look;    // vocabulary
  std::string_view next_famous;  // character, rank, percent, next_among or next_not_among
  std::string_view next_among;
  std::string_view next_not_among;
  std::string_view next_memory;  // Said only where both are not among the first 8.
  std::string_view next_edition;
  std::string_view next_count_known;  // 春风, 春风。, percent, model's percent
  std::string_view next_count_live;   // the same, counted in the corpus file
  std::string_view next_frequencies;

  std::string_view temperature_title;
  std::string_view temperature_look;
  std::string_view temperature_tail;  // temperature, percent beyond the 100 best
  std::string_view temperature_why;
  std::string_view run;  // characters, text

  std::string_view filter_title;
  std::string_view filter_look;
  std::string_view filter_sizes;  // label, fewest, most candidates

  std::string_view opening_title;
  std::string_view opening_look;

  std::string_view form_title;
  std::string_view form_look;
  std::string_view form_acrostic;  // heads, characters a line
  std::string_view form_qijue;
  std::string_view form_check;  // poems with the form, poems, temperature

  std::string_view cache_title;
  std::string_view cache_look;
  std::string_view cache_threads;      // threads
  std::string_view cache_head_length;  // Heads of the table's columns.
  std::string_view cache_head_positions;
  std::string_view cache_head_time;
  std::string_view cache_head_ratio;
  std::string_view cache_head_bits;
  std::string_view cache_equal;
  std::string_view cache_different;
  std::string_view cache_sums;  // characters, positions with, positions without
  std::string_view cache_why;
  std::string_view cache_memory;  // layers, width, bytes a token, tokens, bytes for them
  std::string_view cache_held;    // characters, bytes held
  std::string_view cache_large;
  std::string_view cache_long;  // context, characters
  std::string_view end;
};

const DemoTexts& DemoTextsOf(DemoLanguage language);

// 7260 as "7,260", in German "7.260".
std::string DemoInteger(DemoLanguage language, std::uint64_t value);
// 13.951 with 2 digits as "13.95", in German "13,95".
std::string DemoDecimal(DemoLanguage language, double value, int digits);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_DEMO_TEXTS_H_
