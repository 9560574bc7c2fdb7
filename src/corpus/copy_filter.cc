#include "corpus/copy_filter.h"

#include <algorithm>

#include "base/utf8.h"
#include "corpus/verse_shape.h"

namespace kvasir::corpus {
namespace {

constexpr int kCodePointBits = 21;
static_assert(kCopyPiece * kCodePointBits <= 64);

// What two poems are compared by.
struct Stretches {
  std::vector<std::string> runs;      // Of kCopyRun characters.
  std::vector<std::uint64_t> pieces;  // Different ones, ascending.
};

// Adds the stretches of one line, given by its characters.
void AddLine(std::span<const std::uint32_t> line, Stretches& stretches) {
  for (std::size_t i = 0; i + kCopyRun <= line.size(); ++i) {
    std::string run;
    for (const std::uint32_t c : line.subspan(i, kCopyRun)) base::AppendUtf8(c, run);
    stretches.runs.push_back(std::move(run));
  }
  for (std::size_t i = 0; i + kCopyPiece <= line.size(); ++i) {
    std::uint64_t piece = 0;
    for (const std::uint32_t c : line.subspan(i, kCopyPiece)) piece = piece << kCodePointBits | c;
    stretches.pieces.push_back(piece);
  }
}

Stretches CutStretches(std::string_view poem) {
  Stretches stretches;
  std::vector<std::uint32_t> line;
  for (std::size_t at = 0; at < poem.size();) {
    const base::Utf8Step step = base::DecodeUtf8(poem.substr(at));
    if (step.status != base::Utf8Status::kOk) break;
    at += step.bytes;
    if (IsCorpusHan(step.code_point)) {
      line.push_back(step.code_point);
    } else {
      AddLine(line, stretches);
      line.clear();
    }
  }
  AddLine(line, stretches);
  std::sort(stretches.pieces.begin(), stretches.pieces.end());
  const auto end = std::unique(stretches.pieces.begin(), stretches.pieces.end());
  stretches.pieces.erase(end, stretches.pieces.end());
  return stretches;
}

}  // namespace

CopyFilter::CopyFilter(std::span<const std::string> held_out) {
  for (std::size_t poem = 0; poem < held_out.size(); ++poem) {
    Stretches stretches = CutStretches(held_out[poem]);
    for (std::string& run : stretches.runs) runs_.insert(std::move(run));
    for (const std::uint64_t piece : stretches.pieces) {
      poems_with_[piece].push_back(static_cast<std::uint32_t>(poem));
    }
    pieces_.push_back(stretches.pieces.size());
  }
}

bool CopyFilter::IsNearCopy(std::string_view poem) const {
  const Stretches stretches = CutStretches(poem);
  for (const std::string& run : stretches.runs) {
    if (runs_.contains(run)) return true;
  }
  std::unordered_map<std::uint32_t, std::size_t> shared;  // Pieces shared with a held-out poem.
  for (const std::uint64_t piece : stretches.pieces) {
    const auto found = poems_with_.find(piece);
    if (found == poems_with_.end()) continue;
    for (const std::uint32_t other : found->second) {
      const std::size_t fewer = std::min(stretches.pieces.size(), pieces_[other]);
      if (++shared[other] * kCopyShare >= fewer) return true;
    }
  }
  return false;
}

}  // namespace kvasir::corpus
