#include "constraints/gbnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "constraints/text_cursor.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

// Recursive descent; nesting is limited. Line ends are blanks like any other: a rule ends where the
// next one begins, so '|' may stand at either end of a line.
class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : cursor_("grammar", text) {}

  Result<Grammar> Parse() {
    SkipBlanks();
    while (!cursor_.AtEnd()) {
      if (!AtRuleStart()) {
        return cursor_.Fail(
            "a rule is needed here: NAME ::= …, its name of letters, digits, - "
            "and _");
      }
      KV_TRY(ParseRule());
    }
    for (RuleId rule = 0; rule < names_.size(); ++rule) {
      if (defined_[rule]) continue;
      return cursor_.FailAt(first_uses_[rule],
                            fmt::format("rule '{}' is used but not defined", names_[rule]));
    }
    const auto root = rule_ids_.find("root");
    if (root == rule_ids_.end()) {
      return MakeError(ErrorCode::kUsage, "grammar: it has no rule 'root', where texts begin");
    }
    grammar_.start = grammar_.pool->Call(root->second);
    return FinishGrammar(std::move(grammar_), [&](RuleId rule) { return names_[rule]; });
  }

 private:
  void SkipBlanks() {
    while (!cursor_.AtEnd()) {
      if (cursor_.Skip("#")) {
        while (!cursor_.AtEnd() && !cursor_.LooksAt("\n")) cursor_.Take();
      } else if (!cursor_.Skip(" ") && !cursor_.Skip("\t") && !cursor_.Skip("\n") &&
                 !cursor_.Skip("\r")) {
        return;
      }
    }
  }

  std::string_view NameHere() const {
    std::size_t length = 0;
    while (IsNameByte(cursor_.ByteAt(length))) ++length;
    return cursor_.rest().substr(0, length);
  }

  // Whether NAME ::= stands here.
  bool AtRuleStart() const {
    const std::string_view name = NameHere();
    std::string_view rest = cursor_.rest().substr(name.size());
    while (rest.starts_with(' ') || rest.starts_with('\t')) rest.remove_prefix(1);
    return !name.empty() && rest.starts_with("::=");
  }

  RuleId RuleNamed(std::string_view name) {
    const auto [place, added] =
        rule_ids_.emplace(std::string(name), static_cast<RuleId>(names_.size()));
    if (added) {
      names_.push_back(place->first);
      defined_.push_back(false);
      first_uses_.push_back(cursor_.place());
      grammar_.rules.push_back(kNothingTerm);
    }
    return place->second;
  }

  Result<void> ParseRule() {
    const std::string_view name = NameHere();
    const RuleId rule = RuleNamed(name);
    if (defined_[rule]) return cursor_.Fail("rule '{}' is defined twice", name);
    defined_[rule] = true;
    cursor_.Skip(name);
    SkipBlanks();
    cursor_.Skip("::=");
    KV_TRY(grammar_.rules[rule], ParseAlternatives());
    if (!cursor_.AtEnd() && !AtRuleStart()) return cursor_.Fail("')' has no '(' before it");
    return base::Success();
  }

  Result<TermId> ParseAlternatives() {
    std::vector<TermId> choices;
    do {
      KV_TRY(const TermId choice, ParseSequence());
      choices.push_back(choice);
    } while (cursor_.Skip("|"));
    return grammar_.pool->Alternate(choices);
  }

  // Stops at '|', ')', the next rule or the end.
  Result<TermId> ParseSequence() {
    std::vector<TermId> parts;
    SkipBlanks();
    while (!cursor_.AtEnd() && !cursor_.LooksAt("|") && !cursor_.LooksAt(")") && !AtRuleStart()) {
      KV_TRY(TermId part, ParseAtom());
      SkipBlanks();
      KV_TRY(part, ParseRepeats(part));
      parts.push_back(part);
    }
    return grammar_.pool->Concat(parts);
  }

  Result<TermId> ParseAtom() {
    TermPool& pool = *grammar_.pool;
    if (cursor_.LooksAt("\"")) return ParseLiteral();
    if (cursor_.LooksAt("[")) return ParseClass();
    if (cursor_.Skip(".")) return pool.Chars(CodePointSet::All());
    if (cursor_.LooksAt("(")) {
      if (++depth_ > kMaxNesting) {
        return cursor_.Fail("parentheses are nested more than {} deep, the limit", kMaxNesting);
      }
      const std::size_t place = cursor_.place();
      cursor_.Skip("(");
      KV_TRY(const TermId inner, ParseAlternatives());
      if (!cursor_.Skip(")")) return cursor_.FailAt(place, "this '(' lacks its ')'");
      --depth_;
      return inner;
    }
    if (cursor_.LooksAt("<") || cursor_.LooksAt("!")) {
      return cursor_.Fail("tokens in a grammar (<…>) are not supported: write their text");
    }
    const std::string_view name = NameHere();
    if (name.empty()) {
      return cursor_.Fail("\"…\", […], (…), '.' or the name of a rule is needed here");
    }
    const RuleId rule = RuleNamed(name);
    cursor_.Skip(name);
    return pool.Call(rule);
  }

  Result<TermId> ParseRepeats(TermId part) {
    while (true) {
      std::uint64_t min = 0, max = kNoMaximum;
      if (cursor_.Skip("?")) {
        max = 1;
      } else if (cursor_.Skip("+")) {
        min = 1;
      } else if (cursor_.LooksAt("{")) {
        KV_TRY(const auto counts, ParseCounts());
        std::tie(min, max) = counts;
      } else if (!cursor_.Skip("*")) {
        return part;
      }
      part = grammar_.pool->Repeat(part, min, max);
      SkipBlanks();
    }
  }

  Result<std::pair<std::uint64_t, std::uint64_t>> ParseCounts() {
    cursor_.Skip("{");
    SkipBlanks();
    std::uint64_t min = 0;
    if (!cursor_.LooksAt(",")) {
      KV_TRY(min, cursor_.TakeNumber(kMaxRepeat));
      SkipBlanks();
    }
    std::uint64_t max = min;
    if (cursor_.Skip(",")) {
      SkipBlanks();
      max = kNoMaximum;
      if (!cursor_.LooksAt("}")) {
        KV_TRY(max, cursor_.TakeNumber(kMaxRepeat));
        SkipBlanks();
      }
    }
    if (!cursor_.Skip("}")) return cursor_.Fail("a '{{' before this lacks its '}}'");
    if (min > max) return cursor_.Fail("the repeat {{{},{}}} has its counts reversed", min, max);
    return std::pair(min, max);
  }

  Result<TermId> ParseLiteral() {
    const std::size_t place = cursor_.place();
    cursor_.Skip("\"");
    std::vector<TermId> parts;
    while (!cursor_.Skip("\"")) {
      if (cursor_.AtEnd()) return cursor_.FailAt(place, "this '\"' lacks its end");
      KV_TRY(const std::uint32_t c, ParseCharacter());
      parts.push_back(grammar_.pool->Chars(CodePointSet::Of(c)));
    }
    return grammar_.pool->Concat(parts);
  }

  Result<TermId> ParseClass() {
    const std::size_t place = cursor_.place();
    cursor_.Skip("[");
    const bool negated = cursor_.Skip("^");
    std::vector<CodePointRange> ranges;
    while (!cursor_.Skip("]")) {
      if (cursor_.AtEnd()) return cursor_.FailAt(place, "this '[' lacks its ']'");
      KV_TRY(const std::uint32_t first, ParseCharacter());
      std::uint32_t last = first;
      if (cursor_.LooksAt("-") && cursor_.ByteAt(1) != ']' && cursor_.ByteAt(1) != '\0') {
        cursor_.Skip("-");
        KV_TRY(last, ParseCharacter());
        if (last < first) {
          return cursor_.Fail("a range of a class must lead from a character to a later one");
        }
      }
      ranges.push_back({first, last});
    }
    if (ranges.empty()) return cursor_.FailAt(place, "the class […] is empty");
    const CodePointSet set(std::move(ranges));
    return grammar_.pool->Chars(negated ? set.Complement() : set);
  }

  // One character of a literal or class, maybe escaped. Requires that there is one.
  Result<std::uint32_t> ParseCharacter() {
    if (!cursor_.LooksAt("\\")) return cursor_.Take();
    const std::size_t place = cursor_.place();
    cursor_.Skip("\\");
    if (cursor_.AtEnd()) return cursor_.FailAt(place, "a backslash at the end escapes nothing");
    const std::uint32_t letter = cursor_.Take();
    std::size_t digits = 0;
    switch (letter) {
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return letter;
      case 'x':
        digits = 2;
        break;
      case 'u':
        digits = 4;
        break;
      case 'U':
        digits = 8;
        break;
      default:
        return cursor_.FailAt(place,
                              "this escape is not known: it must be \\t \\r \\n \\\\ \\\" "
                              "\\[ \\] \\- \\^ \\xHH \\uHHHH or \\UHHHHHHHH");
    }
    KV_TRY(const std::uint32_t value, cursor_.TakeHex(digits));
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      return cursor_.FailAt(place, fmt::format("U+{:04X} is not a character", value));
    }
    return value;
  }

  TextCursor cursor_;
  Grammar grammar_;
  std::map<std::string, RuleId> rule_ids_;
  std::vector<std::string> names_;       // [rules]
  std::vector<bool> defined_;            // [rules]
  std::vector<std::size_t> first_uses_;  // [rules] in bytes
  std::size_t depth_ = 0;
};

}  // namespace

Result<Grammar> CompileGbnf(std::string_view text) {
  KV_TRY(CheckConstraintText("grammar", text));
  return GbnfParser(text).Parse();
}

}  // namespace kvasir::constraints
