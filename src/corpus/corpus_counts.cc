#include "corpus/corpus_counts.h"

#include <vector>

#include "base/utf8.h"

namespace kvasir::corpus {

base::Result<CorpusCounts> CountCorpus(std::string_view text) {
  CorpusCounts counts;
  std::vector<bool> seen(0x110000);  // One bit a code point.
  for (std::size_t at = 0; at < text.size();) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    if (step.status != base::Utf8Status::kOk) {
      return base::MakeError(base::ErrorCode::kBadData,
                             "not valid UTF-8: byte 0x{:02X} at offset {}",
                             static_cast<std::uint8_t>(text[at]), at);
    }
    ++counts.characters;
    if (step.code_point == '\n') ++counts.lines;
    if (!seen[step.code_point]) {
      seen[step.code_point] = true;
      ++counts.distinct_characters;
    }
    at += step.bytes;
  }
  return counts;
}

std::uint64_t CountPhrase(std::string_view text, std::string_view phrase) {
  if (phrase.empty()) return 0;
  std::uint64_t count = 0;
  for (std::size_t at = text.find(phrase); at != text.npos; at = text.find(phrase, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace kvasir::corpus
