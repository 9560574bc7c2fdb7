#include "constraints/number_terms.h"

#include <string_view>
#include <utility>

#include "constraints/regex.h"

namespace kvasir::constraints {

TermId NumberTerms::Expand(TermPool& pool, std::uint32_t state) {
  std::vector<TermId> choices;
  const bool plain = judge_.spelling() == NumberSpelling::kPlain;
  const std::string_view letters = plain ? "-0123456789." : "-0123456789.eE+";
  for (const char c : letters) {
    const std::string text = texts_[state] + c;
    const NumberPrefix judged = judge_.Judge(text);
    if (!judged.possible) continue;
    // It can be continued if some longer text is in the set: after one more character.
    bool continues = false;
    for (const char d : std::string_view("0123456789.eE+-")) {
      continues = continues || judge_.Judge(text + d).possible;
    }
    TermId rest = kNothingTerm;
    if (continues) {
      const auto [known, added] =
          ids_.emplace(judge_.Representative(text), static_cast<std::uint32_t>(texts_.size()));
      if (added) texts_.push_back(known->first);
      rest = pool.Lazy(source_, known->second);
    }
    if (judged.accepted) rest = pool.Alternate(rest, kEmptyTerm);
    choices.push_back(
        pool.Concat(pool.Chars(CodePointSet::Of(static_cast<std::uint8_t>(c))), rest));
  }
  return pool.Alternate(choices);
}

TermId AnyNumberTerm(TermPool& pool, NumberSpelling spelling) {
  const char* regex = spelling == NumberSpelling::kPlain
                          ? "0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\\.[0-9]*[1-9]"
                          : "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?";
  return RegexTerm(pool, regex, RegexDialect::kPlain, RegexMatch::kWhole).value();
}

}  // namespace kvasir::constraints
