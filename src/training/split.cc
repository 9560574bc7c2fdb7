#include "training/split.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/philox.h"

namespace kvasir::training {
namespace {

constexpr std::size_t kMinDocuments = 20;
constexpr std::uint32_t kSplitPurpose = 0x53504C54;  // "SPLT"
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The first line of a non-empty text, its newline included.
std::string_view FirstLine(std::string_view text) {
  const std::size_t end = text.find('\n');
  return text.substr(0, end == std::string_view::npos ? end : end + 1);
}

// Cuts a file into documents, which together are the file. Blank lines belong to the document
// before them; those at the start of a file to its first.
void AddDocuments(std::string_view file, DocumentUnit unit, std::vector<std::string_view>& out) {
  if (unit == DocumentUnit::kFile) {
    if (!file.empty()) out.push_back(file);
    return;
  }
  std::size_t begin = 0;
  bool has_text = false, was_blank = false;
  for (std::size_t at = 0; at < file.size();) {
    const std::string_view line = FirstLine(file.substr(at));
    const bool blank = Trimmed(line).empty();
    if (has_text && !blank && (unit == DocumentUnit::kLine || was_blank)) {
      out.push_back(file.substr(begin, at - begin));
      begin = at;
    }
    has_text = has_text || !blank;
    was_blank = blank;
    at += line.size();
  }
  if (begin < file.size()) out.push_back(file.substr(begin));
}

// A document, and where the draw puts it: those of one content are neighbours.
struct Drawn {
  std::uint64_t number = 0;
  std::uint64_t content = 0;  // Hash.
  std::size_t index = 0;
};

std::vector<Drawn> Draw(std::span<const std::string_view> documents, std::uint64_t seed) {
  std::vector<Drawn> drawn;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string_view content = Trimmed(documents[i]);
    const std::uint64_t hash = base::HashSpan64(std::span(content));
    const auto w =
        base::Philox4x32(seed, {static_cast<std::uint32_t>(hash),
                                static_cast<std::uint32_t>(hash >> 32), 0, kSplitPurpose});
    drawn.push_back({std::uint64_t{w[0]} << 32 | w[1], hash, i});
  }
  std::sort(drawn.begin(), drawn.end(), [](const Drawn& a, const Drawn& b) {
    return std::tie(a.number, a.content, a.index) < std::tie(b.number, b.content, b.index);
  });
  return drawn;
}

// Which documents are held out: those drawn first, copies together, that fit the bytes.
std::vector<bool> Choose(std::span<const std::string_view> documents, std::uint64_t seed,
                         std::uint64_t most_bytes, std::uint64_t& held_bytes) {
  const std::vector<Drawn> drawn = Draw(documents, seed);
  std::vector<bool> held(documents.size());
  held_bytes = 0;
  for (std::size_t i = 0, end = 0; i < drawn.size(); i = end) {
    std::uint64_t bytes = 0;
    for (end = i; end < drawn.size() && drawn[end].content == drawn[i].content; ++end) {
      bytes += documents[drawn[end].index].size();
    }
    if (bytes > most_bytes - held_bytes) continue;
    held_bytes += bytes;
    for (std::size_t k = i; k < end; ++k) held[drawn[k].index] = true;
  }
  return held;
}

std::optional<TextSplit> SplitDocuments(std::span<const std::string> files, DocumentUnit unit,
                                        std::uint64_t seed, std::uint64_t most_bytes) {
  std::vector<std::string_view> documents;
  for (const std::string& file : files) AddDocuments(file, unit, documents);
  if (documents.size() < kMinDocuments) return std::nullopt;
  std::uint64_t held_bytes = 0;
  const std::vector<bool> held = Choose(documents, seed, most_bytes, held_bytes);
  if (held_bytes == 0 || held_bytes < most_bytes / 2) return std::nullopt;
  TextSplit split;
  split.unit = unit;
  split.documents = documents.size();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    (held[i] ? split.held_out : split.text) += documents[i];
    if (held[i]) ++split.held_out_documents;
  }
  return split;
}

// The end of all texts, from the first line's start in it; without one, from a character's.
TextSplit SplitEnd(std::span<const std::string> files, std::uint64_t most_bytes) {
  TextSplit split;
  for (const std::string& file : files) split.text += file;
  std::size_t cut = split.text.size() - most_bytes;
  const std::size_t newline = cut == 0 ? std::string::npos : split.text.find('\n', cut - 1);
  if (newline != std::string::npos && newline + 1 < split.text.size()) {
    cut = newline + 1;
  } else {
    while (cut < split.text.size() &&
           (static_cast<unsigned char>(split.text[cut]) & 0xC0) == 0x80) {
      ++cut;
    }
  }
  split.held_out = split.text.substr(cut);
  split.text.resize(cut);
  return split;
}

}  // namespace

std::string_view DocumentUnitName(DocumentUnit unit) {
  switch (unit) {
    case DocumentUnit::kFile:
      return "files";
    case DocumentUnit::kParagraph:
      return "paragraphs";
    case DocumentUnit::kLine:
      return "lines";
    case DocumentUnit::kEnd:
      break;
  }
  return "the end";
}

TextSplit SplitTexts(std::span<const std::string> files, const SplitOptions& options) {
  std::uint64_t total = 0;
  for (const std::string& file : files) total += file.size();
  const auto wanted = static_cast<std::uint64_t>(options.share * static_cast<double>(total));
  const std::uint64_t most_bytes = std::min({wanted, options.max_bytes, total});
  if (most_bytes > 0) {
    for (const auto unit : {DocumentUnit::kFile, DocumentUnit::kParagraph, DocumentUnit::kLine}) {
      auto split = SplitDocuments(files, unit, options.seed, most_bytes);
      if (split) return *std::move(split);
    }
  }
  return SplitEnd(files, most_bytes);
}

}  // namespace kvasir::training
