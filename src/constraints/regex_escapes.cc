#include "constraints/regex_escapes.h"

#include <optional>
#include <string>

#include "constraints/unicode_class.h"

namespace kvasir::constraints {
namespace {

using base::Result;

CodePointSet Blanks(RegexDialect dialect) {
  if (dialect == RegexDialect::kPlain) return CodePointSet({{'\t', '\r'}, {' ', ' '}});
  // ECMA-262 WhiteSpace and LineTerminator.
  return CodePointSet({{'\t', '\r'},
                       {' ', ' '},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
}

std::optional<CodePointSet> NamedClass(std::uint32_t letter, RegexDialect dialect) {
  const CodePointSet digits = CodePointSet::Range('0', '9');
  const CodePointSet word({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return digits.Complement();
    case 'w':
      return word;
    case 'W':
      return word.Complement();
    case 's':
      return Blanks(dialect);
    case 'S':
      return Blanks(dialect).Complement();
    default:
      return std::nullopt;
  }
}

std::optional<std::uint32_t> ControlCharacter(std::uint32_t letter) {
  switch (letter) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    default:
      return std::nullopt;
  }
}

// After \p or \P: {L}, {Lu}, {Han}; with the names of ECMA-262 before "=" too.
Result<CodePointSet> ParseUnicodeClass(TextCursor& cursor, bool negated) {
  if (!cursor.Skip("{")) return cursor.Fail("\\p needs a class: \\p{{L}}, \\p{{Nd}}, \\p{{Han}}");
  std::string name;
  while (!cursor.AtEnd() && !cursor.LooksAt("}") && name.size() < 64) {
    name += cursor.Peek();
    cursor.Take();
  }
  if (!cursor.Skip("}")) return cursor.Fail("a \\p{{ before this lacks its '}}'");
  for (const std::string_view key : {"gc=", "General_Category=", "sc=", "Script="}) {
    if (name.starts_with(key)) name.erase(0, key.size());
  }
  const CodePointSet* set = FindUnicodeClass(name);
  if (set == nullptr) {
    return cursor.Fail(
        "the class \\p{{{}}} is not known: it must be a general category by its "
        "short name (L, Lu, Nd, …), Any or Han",
        base::ReplaceInvalidUtf8(name));
  }
  return negated ? set->Complement() : *set;
}

// After \u: four digits (two such for a pair of surrogates), or {…}.
Result<CodePointSet> ParseUnicodeEscape(TextCursor& cursor) {
  std::uint32_t value = 0;
  if (cursor.Skip("{")) {
    std::size_t digits = 0;
    while (digits < 8 && cursor.ByteAt(digits) != '}' && cursor.ByteAt(digits) != '\0') ++digits;
    KV_TRY(value, cursor.TakeHex(digits));
    if (digits == 0 || !cursor.Skip("}")) return cursor.Fail("\\u{{…}} needs 1 to 8 digits");
  } else {
    KV_TRY(value, cursor.TakeHex(4));
    if (value >= 0xD800 && value <= 0xDBFF && cursor.Skip("\\u")) {
      KV_TRY(const std::uint32_t low, cursor.TakeHex(4));
      if (low < 0xDC00 || low > 0xDFFF) {
        return cursor.Fail("\\u{:04x}\\u{:04x} is not a pair of surrogates", value, low);
      }
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
    return cursor.Fail("U+{:04X} is not a character", value);
  }
  return CodePointSet::Of(value);
}

}  // namespace

Result<CodePointSet> ParseRegexEscape(TextCursor& cursor, RegexDialect dialect, bool in_class) {
  const std::size_t place = cursor.place();
  cursor.Skip("\\");
  if (cursor.AtEnd()) return cursor.FailAt(place, "a backslash at the end escapes nothing");
  const std::uint32_t letter = cursor.Take();
  if (const auto named = NamedClass(letter, dialect)) return *named;
  if (const auto control = ControlCharacter(letter)) return CodePointSet::Of(*control);
  if (letter == 'p' || letter == 'P') return ParseUnicodeClass(cursor, letter == 'P');
  if (letter == 'u') return ParseUnicodeEscape(cursor);
  if (letter == 'x') {
    KV_TRY(const std::uint32_t value, cursor.TakeHex(2));
    return CodePointSet::Of(value);
  }
  if (letter == 'b' && in_class) return CodePointSet::Of('\b');
  if (letter == '0' && !(cursor.ByteAt(0) >= '0' && cursor.ByteAt(0) <= '9')) {
    return CodePointSet::Of(0);
  }
  if (letter == 'c' && ((cursor.ByteAt(0) | 0x20) >= 'a' && (cursor.ByteAt(0) | 0x20) <= 'z')) {
    return CodePointSet::Of(cursor.Take() & 0x1F);
  }
  if (letter >= '0' && letter <= '9') {
    return cursor.FailAt(place, "backreferences and octal escapes are not supported");
  }
  if (letter == 'b' || letter == 'B') {
    return cursor.FailAt(place, "word boundaries (\\b, \\B) are not supported");
  }
  if ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z') {
    return cursor.FailAt(
        place, fmt::format("the escape \\{} is not supported", static_cast<char>(letter)));
  }
  return CodePointSet::Of(letter);  // A sign that stands for itself.
}

}  // namespace kvasir::constraints
