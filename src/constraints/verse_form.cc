#include "constraints/verse_form.h"

#include <array>
#include <cstdint>
#include <vector>

#include "constraints/form_matcher.h"
#include "constraints/han_character.h"
#include "constraints/verse_matcher.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;

// In the order of VerseForm.
constexpr std::array<VerseShape, 4> kShapes = {
    {{"wujue", 4, 5}, {"qijue", 4, 7}, {"wulv", 8, 5}, {"qilv", 8, 7}}};

}  // namespace

VerseShape ShapeOf(VerseForm form) { return kShapes[static_cast<std::size_t>(form)]; }

base::Result<VerseForm> ParseVerseForm(std::string_view name) {
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    if (kShapes[i].name == name) return static_cast<VerseForm>(i);
  }
  return MakeError(ErrorCode::kUsage,
                   "verse form '{}' is not known: it must be wujue, qijue, wulv or qilv", name);
}

base::Result<std::unique_ptr<Matcher>> MakeVerseMatcher(const tokenizer::Vocabulary& vocabulary,
                                                        VerseForm form, std::string_view heads,
                                                        const VerseRules& rules) {
  const VerseShape shape = ShapeOf(form);
  std::vector<FormLine> lines(shape.lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i] = {{}, shape.chars, i % 2 == 0 ? kComma : kFullStop};
  }
  if (!heads.empty()) {
    KV_TRY(const std::vector<std::uint32_t> characters, ParseHeads(heads));
    if (characters.size() != shape.lines) {
      return MakeError(ErrorCode::kUsage, "{} heads were given, but a {} has {} lines",
                       characters.size(), shape.name, shape.lines);
    }
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].head = characters[i];
  }
  return MakeRuledMatcher(vocabulary, lines, rules);
}

}  // namespace kvasir::constraints
