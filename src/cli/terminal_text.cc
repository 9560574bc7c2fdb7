#include "cli/terminal_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/utf8.h"
#include "cli/json_output.h"

namespace kvasir::cli {
namespace {

struct CodeRange {
  std::uint32_t first, last;
};

// Unicode 15, EastAsianWidth.txt: the blocks whose characters are W or F, gaps joined.
constexpr std::array<CodeRange, 15> kWide = {{{0x1100, 0x115F},
                                              {0x231A, 0x231B},
                                              {0x2E80, 0x303E},
                                              {0x3041, 0x33FF},
                                              {0x3400, 0x4DBF},
                                              {0x4E00, 0x9FFF},
                                              {0xA000, 0xA4CF},
                                              {0xA960, 0xA97F},
                                              {0xAC00, 0xD7A3},
                                              {0xF900, 0xFAFF},
                                              {0xFE30, 0xFE6F},
                                              {0xFF00, 0xFF60},
                                              {0xFFE0, 0xFFE6},
                                              {0x1F300, 0x1FAFF},
                                              {0x20000, 0x3FFFD}}};
// Combining marks and variation selectors met in practice.
constexpr std::array<CodeRange, 6> kZeroWidth = {{{0x0300, 0x036F},
                                                  {0x200B, 0x200F},
                                                  {0x20D0, 0x20FF},
                                                  {0xFE00, 0xFE0F},
                                                  {0xFE20, 0xFE2F},
                                                  {0xE0100, 0xE01EF}}};

template <std::size_t kCount>
bool Contains(const std::array<CodeRange, kCount>& ranges, std::uint32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const CodeRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

std::size_t WidthOf(std::uint32_t code_point) {
  if (Contains(kWide, code_point)) return 2;
  return Contains(kZeroWidth, code_point) ? 0 : 1;
}

// Pieces that a line may be broken between: words with the space after them, wide characters with
// the punctuation after them.
std::vector<std::string_view> BreakablePieces(std::string_view line) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  bool after_break = true;
  for (std::size_t i = 0; i < line.size();) {
    const base::Utf8Step step = base::DecodeUtf8(line.substr(i));
    const std::string_view character = line.substr(i, step.bytes);
    const bool wide = step.status == base::Utf8Status::kOk && WidthOf(step.code_point) == 2;
    constexpr std::array<std::string_view, 10> kClosing = {"，", "。", "、", "：", "；",
                                                           "？", "！", "）", "」", "》"};
    const bool closing = std::find(kClosing.begin(), kClosing.end(), character) != kClosing.end();
    if (i > begin && !closing && (after_break || wide)) {
      pieces.push_back(line.substr(begin, i - begin));
      begin = i;
    }
    after_break = character == " " || wide;
    i += step.bytes;
  }
  if (begin < line.size()) pieces.push_back(line.substr(begin));
  return pieces;
}

void AppendTrimmed(std::string& out, std::string line, std::string_view indent) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (!line.empty()) out += indent;
  out += line + "\n";
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const base::Utf8Step step = base::DecodeUtf8(text);
    width += step.status == base::Utf8Status::kOk ? WidthOf(step.code_point) : 1;
    text.remove_prefix(step.bytes);
  }
  return width;
}

std::string PadRight(std::string_view text, std::size_t columns) {
  std::string padded(text);
  const std::size_t width = DisplayWidth(text);
  if (width < columns) padded.append(columns - width, ' ');
  return padded;
}

std::string Visible(std::string_view text) {
  if (text == "\n") return "⏎";
  if (text == "\t") return "⇥";
  if (text == " ") return "␣";
  return OneLine(text);
}

std::string Wrap(std::string_view text, std::size_t columns, std::string_view indent) {
  std::string out;
  const std::size_t room = columns - DisplayWidth(indent);
  while (true) {
    const std::size_t end = text.find('\n');
    std::string line;
    for (const std::string_view piece : BreakablePieces(text.substr(0, end))) {
      std::string_view trimmed = piece;
      while (trimmed.ends_with(' ')) trimmed.remove_suffix(1);
      if (!line.empty() && DisplayWidth(line) + DisplayWidth(trimmed) > room) {
        AppendTrimmed(out, std::move(line), indent);
        line.clear();
      }
      line += piece;
    }
    AppendTrimmed(out, std::move(line), indent);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace kvasir::cli
