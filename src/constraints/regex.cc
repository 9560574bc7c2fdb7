#include "constraints/regex.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "constraints/regex_escapes.h"
#include "constraints/regex_piece.h"
#include "constraints/text_cursor.h"
#include "constraints/unicode_class.h"

namespace kvasir::constraints {
namespace {

using base::Result;

CodePointSet Dot(RegexDialect dialect) {
  return dialect == RegexDialect::kPlain
             ? CodePointSet::Of('\n').Complement()
             : CodePointSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).Complement();
}

// Recursive descent; nesting is limited.
class RegexParser {
 public:
  RegexParser(TermPool& pool, std::string_view regex, RegexDialect dialect)
      : pool_(pool), cursor_("regex", regex), dialect_(dialect) {}

  Result<RegexPiece> Parse() {
    KV_TRY(RegexPiece piece, ParseAlternatives());
    if (!cursor_.AtEnd()) return cursor_.Fail("')' has no '(' before it; write \\) for the sign");
    return piece;
  }

 private:
  Result<RegexPiece> ParseAlternatives() {
    std::vector<RegexPiece> choices;
    do {
      KV_TRY(RegexPiece choice, ParseSequence());
      choices.push_back(std::move(choice));
    } while (cursor_.Skip("|"));
    return RegexPiece::Alternate(pool_, choices);
  }

  Result<RegexPiece> ParseSequence() {
    std::vector<RegexPiece> parts;
    while (!cursor_.AtEnd() && !cursor_.LooksAt("|") && !cursor_.LooksAt(")")) {
      KV_TRY(RegexPiece part, ParseAtom());
      KV_TRY(part, ParseRepeats(std::move(part)));
      parts.push_back(std::move(part));
    }
    return RegexPiece::Concat(pool_, std::move(parts));
  }

  Result<RegexPiece> ParseAtom() {
    if (cursor_.LooksAt("*") || cursor_.LooksAt("+") || cursor_.LooksAt("?")) {
      return cursor_.Fail("there is nothing to repeat here; write \\{} for the sign",
                          cursor_.Peek());
    }
    if (cursor_.LooksAt("{") && LooksLikeCounts()) {
      return cursor_.Fail("there is nothing to repeat here; write \\{{ for the sign");
    }
    if (cursor_.Skip("^")) return RegexPiece::Start();
    if (cursor_.Skip("$")) return RegexPiece::End();
    if (cursor_.Skip(".")) return RegexPiece::Plain(pool_.Chars(Dot(dialect_)));
    if (cursor_.Skip("[")) return ParseClass();
    if (cursor_.Skip("(")) return ParseGroup();
    if (cursor_.LooksAt("\\")) {
      KV_TRY(const CodePointSet set, ParseRegexEscape(cursor_, dialect_, /*in_class=*/false));
      return RegexPiece::Plain(pool_.Chars(set));
    }
    return RegexPiece::Plain(pool_.Chars(CodePointSet::Of(cursor_.Take())));
  }

  Result<RegexPiece> ParseGroup() {
    if (cursor_.Skip("?")) {
      if (cursor_.Skip("P<") || (cursor_.LooksAt("<") && !cursor_.LooksAt("<=") &&
                                 !cursor_.LooksAt("<!") && cursor_.Skip("<"))) {
        while (!cursor_.AtEnd() && !cursor_.LooksAt(">")) cursor_.Take();
        if (!cursor_.Skip(">")) return cursor_.Fail("the name of a group lacks its '>'");
      } else if (!cursor_.Skip(":")) {
        const bool look = cursor_.LooksAt("=") || cursor_.LooksAt("!") || cursor_.LooksAt("<");
        return cursor_.Fail("{} are not supported", look ? "lookahead and lookbehind"
                                                    : cursor_.LooksAt(">") ? "atomic groups (?>…)"
                                                    : cursor_.LooksAt("#") ? "comments (?#…)"
                                                                           : "flags such as (?i)");
      }
    }
    if (++depth_ > kMaxNesting) {
      return cursor_.Fail("parentheses are nested more than {} deep, the limit", kMaxNesting);
    }
    KV_TRY(RegexPiece piece, ParseAlternatives());
    --depth_;
    if (!cursor_.Skip(")")) return cursor_.Fail("a '(' before this lacks its ')'");
    return piece;
  }

  // Whether {n}, {n,}, {n,m} or {,m} stands here; else '{' is a sign like any other.
  bool LooksLikeCounts() const {
    std::size_t i = 1;
    const auto digit = [&] { return cursor_.ByteAt(i) >= '0' && cursor_.ByteAt(i) <= '9'; };
    const std::size_t begin = i;
    while (digit()) ++i;
    bool any = i > begin;
    if (cursor_.ByteAt(i) == ',') {
      ++i;
      while (digit()) any = true, ++i;
    }
    return any && cursor_.ByteAt(i) == '}';
  }

  Result<RegexPiece> ParseRepeats(RegexPiece piece) {
    for (bool first = true; !cursor_.AtEnd(); first = false) {
      std::uint64_t min = 0, max = kNoMaximum;
      if (cursor_.LooksAt("{") && LooksLikeCounts()) {
        KV_TRY(const auto counts, ParseCounts());
        std::tie(min, max) = counts;
      } else if (cursor_.LooksAt("*") || cursor_.LooksAt("+") || cursor_.LooksAt("?")) {
        if (!first) {
          return cursor_.Fail("'{}' after a repeat is not supported; put the repeat in (…)",
                              cursor_.Peek());
        }
        if (cursor_.Skip("+")) {
          min = 1;
        } else if (cursor_.Skip("?")) {
          max = 1;
        } else {
          cursor_.Skip("*");
        }
      } else {
        break;
      }
      cursor_.Skip("?");  // As few as possible: the same texts.
      if (!piece.plain() && max > 1 && !(min <= 1 && max == kNoMaximum)) {
        return cursor_.Fail("^ and $ inside a counted repeat are not supported");
      }
      piece = RegexPiece::Repeat(pool_, piece, min, max);
    }
    return piece;
  }

  Result<std::pair<std::uint64_t, std::uint64_t>> ParseCounts() {
    cursor_.Skip("{");
    if (cursor_.LooksAt(",")) {
      return cursor_.Fail("{{,n}} means different things in different dialects: write {{0,n}}");
    }
    KV_TRY(const std::uint64_t min, cursor_.TakeNumber(kMaxRepeat));
    std::uint64_t max = min;
    if (cursor_.Skip(",")) {
      max = kNoMaximum;
      if (!cursor_.LooksAt("}")) {
        KV_TRY(max, cursor_.TakeNumber(kMaxRepeat));
      }
    }
    cursor_.Skip("}");
    if (min > max) return cursor_.Fail("the repeat {{{},{}}} has its counts reversed", min, max);
    return std::pair(min, max);
  }

  Result<RegexPiece> ParseClass() {
    const bool negated = cursor_.Skip("^");
    if (dialect_ == RegexDialect::kPlain && cursor_.LooksAt("]")) {
      return cursor_.Fail("a class […] is empty; write \\] for the sign");
    }
    std::vector<CodePointRange> ranges;
    while (!cursor_.Skip("]")) {
      if (cursor_.AtEnd()) return cursor_.Fail("a '[' before this lacks its ']'");
      if (dialect_ == RegexDialect::kPlain && cursor_.LooksAt("[:")) {
        return cursor_.Fail("classes such as [:alpha:] are not supported; use \\p{{…}}");
      }
      KV_TRY(const CodePointSet first, ParseClassMember());
      const bool single =
          first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
      if (single && cursor_.LooksAt("-") && cursor_.ByteAt(1) != ']' && cursor_.ByteAt(1) != 0) {
        cursor_.Skip("-");
        KV_TRY(const CodePointSet last, ParseClassMember());
        const std::uint32_t from = first.ranges()[0].first;
        const bool last_single =
            last.ranges().size() == 1 && last.ranges()[0].first == last.ranges()[0].last;
        if (!last_single || last.ranges()[0].first < from) {
          return cursor_.Fail("a range of a class must lead from a character to a later one");
        }
        ranges.push_back({from, last.ranges()[0].first});
      } else {
        ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
      }
    }
    const CodePointSet set(std::move(ranges));
    return RegexPiece::Plain(pool_.Chars(negated ? set.Complement() : set));
  }

  Result<CodePointSet> ParseClassMember() {
    if (cursor_.AtEnd()) return cursor_.Fail("a '[' before this lacks its ']'");
    if (cursor_.LooksAt("\\")) return ParseRegexEscape(cursor_, dialect_, /*in_class=*/true);
    return CodePointSet::Of(cursor_.Take());
  }

  TermPool& pool_;
  TextCursor cursor_;
  const RegexDialect dialect_;
  std::size_t depth_ = 0;
};

}  // namespace

Result<TermId> RegexTerm(TermPool& pool, std::string_view regex, RegexDialect dialect,
                         RegexMatch match) {
  KV_TRY(CheckConstraintText("regex", regex));
  KV_TRY(RegexPiece piece, RegexParser(pool, regex, dialect).Parse());
  if (match == RegexMatch::kSearch) {
    const RegexPiece any =
        RegexPiece::Plain(pool.Repeat(pool.Chars(CodePointSet::All()), 0, kNoMaximum));
    piece = RegexPiece::Concat(pool, {any, std::move(piece), any});
  }
  return piece.Whole(pool);
}

Result<Grammar> CompileRegex(std::string_view regex) {
  Grammar grammar;
  KV_TRY(grammar.start, RegexTerm(*grammar.pool, regex, RegexDialect::kPlain, RegexMatch::kWhole));
  if (grammar.start == kNothingTerm) {
    return base::MakeError(base::ErrorCode::kUsage, "no text matches the regex '{}'",
                           base::ReplaceInvalidUtf8(regex));
  }
  KV_TRY(CheckNestedRepeats(grammar));
  return grammar;
}

}  // namespace kvasir::constraints
