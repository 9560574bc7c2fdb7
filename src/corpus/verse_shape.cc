#include "corpus/verse_shape.h"

#include <cstddef>

#include "base/utf8.h"

namespace kvasir::corpus {
namespace {

constexpr std::uint32_t kComma = 0xFF0C;     // ，
constexpr std::uint32_t kFullStop = 0x3002;  // 。

}  // namespace

bool IsCorpusHan(std::uint32_t code_point) {
  return (code_point >= 0x3400 && code_point <= 0x9FFF) ||
         (code_point >= 0x20000 && code_point <= 0x2FFFF);
}

bool IsRegularVerse(std::string_view poem) {
  std::size_t lines = 0;
  std::size_t line_length = 0;  // Of every line, once the first has ended.
  std::size_t open_length = 0;  // Characters of the line that is still open.
  for (std::size_t at = 0; at < poem.size();) {
    const base::Utf8Step step = base::DecodeUtf8(poem.substr(at));
    if (step.status != base::Utf8Status::kOk) return false;
    at += step.bytes;
    if (IsCorpusHan(step.code_point)) {
      ++open_length;
      continue;
    }
    if (step.code_point != (lines % 2 == 0 ? kComma : kFullStop)) return false;
    if (lines == 0) line_length = open_length;
    if (open_length != line_length) return false;
    ++lines;
    open_length = 0;
  }
  return open_length == 0 && (line_length == 5 || line_length == 7) && (lines == 4 || lines == 8);
}

}  // namespace kvasir::corpus
