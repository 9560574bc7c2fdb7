#include "tokenizer/character_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

constexpr std::uint32_t kCodePoints = 0x110000;
constexpr std::uint32_t kMetaSpace = 0x2581;  // ▁

void Add(VocabularySpec& spec, std::string piece, TokenType type) {
  spec.pieces.push_back(std::move(piece));
  spec.scores.push_back(0);
  spec.types.push_back(type);
}

// The distinct characters met so far.
struct CharacterSet {
  std::vector<bool> seen = std::vector<bool>(kCodePoints);
  std::vector<std::uint32_t> code_points;  // Those seen, in the order they came.
};

// Adds the characters of text. which: the text's number for a message, from 1.
Result<void> Collect(std::string_view text, std::size_t which, std::size_t count,
                     CharacterSet& set) {
  for (std::size_t at = 0; at < text.size();) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    if (step.status != base::Utf8Status::kOk) {
      return MakeError(ErrorCode::kBadData, "{} is not valid UTF-8: byte 0x{:02X} at offset {}",
                       count == 1 ? "the text" : fmt::format("text {} of {}", which, count),
                       static_cast<std::uint8_t>(text[at]), at);
    }
    if (!set.seen[step.code_point]) {
      set.seen[step.code_point] = true;
      set.code_points.push_back(step.code_point);
    }
    at += step.bytes;
  }
  return base::Success();
}

}  // namespace

Result<VocabularySpec> BuildCharacterVocabulary(std::span<const std::string_view> texts) {
  CharacterSet set;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    KV_TRY(Collect(texts[i], i + 1, texts.size(), set));
  }
  if (set.code_points.empty()) {
    return MakeError(ErrorCode::kBadData, "no vocabulary can be made of an empty text");
  }
  std::sort(set.code_points.begin(), set.code_points.end());

  VocabularySpec spec;
  Add(spec, "<unk>", TokenType::kUnknown);
  Add(spec, "<s>", TokenType::kControl);
  Add(spec, "</s>", TokenType::kControl);
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  for (int byte = 0; byte < 256; ++byte) {
    Add(spec, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  }
  for (const std::uint32_t code_point : set.code_points) {
    if (code_point == kMetaSpace) continue;
    std::string piece;
    base::AppendUtf8(code_point == ' ' ? kMetaSpace : code_point, piece);
    Add(spec, std::move(piece), TokenType::kNormal);
  }
  return spec;
}

Result<VocabularySpec> BuildCharacterVocabulary(std::string_view text) {
  return BuildCharacterVocabulary(std::span(&text, 1));
}

}  // namespace kvasir::tokenizer
