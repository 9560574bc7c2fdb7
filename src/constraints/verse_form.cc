#include "constraints/verse_form.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/utf8.h"
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

// One for each line, each in the vocabulary.
base::Result<std::vector<std::uint32_t>> HeadsOf(const tokenizer::Vocabulary& vocabulary,
                                                 const VerseShape& shape, std::string_view text) {
  KV_TRY(std::vector<std::uint32_t> heads, ParseHeads(text));
  if (heads.size() != shape.lines) {
    return MakeError(ErrorCode::kUsage, "{} heads were given, but a {} has {} lines", heads.size(),
                     shape.name, shape.lines);
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::string bytes;
    base::AppendUtf8(heads[i], bytes);
    if (vocabulary.FindPiece(bytes)) continue;
    return MakeError(ErrorCode::kUsage,
                     "head {} is {}: it must be a character of the model's vocabulary", i + 1,
                     DescribeCharacter(heads[i]));
  }
  return heads;
}

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
                                                        VerseForm form,
                                                        std::optional<std::string_view> heads,
                                                        const VerseRules& rules) {
  const VerseShape shape = ShapeOf(form);
  std::vector<FormLine> lines(shape.lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i] = {{}, shape.chars, i % 2 == 0 ? kComma : kFullStop};
  }
  if (heads) {
    KV_TRY(const std::vector<std::uint32_t> characters, HeadsOf(vocabulary, shape, *heads));
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].head = characters[i];
  }
  return MakeRuledMatcher(vocabulary, lines, rules);
}

}  // namespace kvasir::constraints
