#include "constraints/acrostic.h"

#include <cstdint>
#include <vector>

#include "constraints/form_matcher.h"
#include "constraints/han_character.h"
#include "constraints/verse_matcher.h"

namespace kvasir::constraints {

base::Result<std::unique_ptr<Matcher>> MakeAcrosticMatcher(const tokenizer::Vocabulary& vocabulary,
                                                           std::string_view heads,
                                                           std::size_t chars_per_line,
                                                           const VerseRules& rules) {
  if (chars_per_line < 1 || chars_per_line > kMaxLineChars) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "{} characters a line are not allowed: it must be 1 to {}",
                           chars_per_line, kMaxLineChars);
  }
  KV_TRY(const std::vector<std::uint32_t> characters, ParseHeads(heads));
  std::vector<FormLine> lines;
  lines.reserve(characters.size());
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const bool stop = i % 2 == 1 || i + 1 == characters.size();
    lines.push_back({characters[i], chars_per_line, stop ? kFullStop : kComma});
  }
  return MakeRuledMatcher(vocabulary, lines, rules);
}

}  // namespace kvasir::constraints
