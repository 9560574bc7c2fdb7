#include "constraints/choices.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "constraints/text_cursor.h"

namespace kvasir::constraints {
namespace {

using CodePoints = std::vector<std::uint32_t>;

}  // namespace

TermId ChoicesTerm(TermPool& pool, std::span<const std::string> texts) {
  std::vector<CodePoints> sorted;
  for (const std::string& text : texts) sorted.push_back(base::Utf8ToCodePoints(text).value());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  // open[d]: what may follow the first d characters of the last text, as found so far.
  std::vector<std::vector<TermId>> open(1);
  const CodePoints* last = nullptr;
  const auto close_to = [&](std::size_t depth) {
    while (open.size() > depth + 1) {
      const TermId rest = pool.Alternate(open.back());
      open.pop_back();
      const TermId c = pool.Chars(CodePointSet::Of((*last)[open.size() - 1]));
      open.back().push_back(pool.Concat(c, rest));
    }
  };
  for (const CodePoints& text : sorted) {
    std::size_t common = 0;
    if (last != nullptr) {
      common = static_cast<std::size_t>(
          std::mismatch(text.begin(), text.end(), last->begin(), last->end()).first - text.begin());
      close_to(common);
    }
    open.resize(text.size() + 1);
    open.back().push_back(kEmptyTerm);
    last = &text;
  }
  if (last != nullptr) close_to(0);
  return pool.Alternate(open.front());
}

base::Result<Grammar> CompileChoices(std::span<const std::string> texts) {
  if (texts.empty()) {
    return base::MakeError(base::ErrorCode::kUsage, "no choice is given: at least 1 is needed");
  }
  for (const std::string& text : texts) {
    KV_TRY(CheckConstraintText("choice", text));
  }
  Grammar grammar;
  grammar.start = ChoicesTerm(*grammar.pool, texts);
  return grammar;
}

}  // namespace kvasir::constraints
