#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using base::Success;

constexpr std::string_view kMetaSpace = "\xE2\x96\x81";  // U+2581 ▁

bool IsText(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

std::optional<std::uint8_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

// The byte of a piece <0x00> … <0xFF>.
std::optional<std::uint8_t> ParseBytePiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const auto high = HexDigit(piece[3]);
  const auto low = HexDigit(piece[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high << 4 | *low);
}

void AppendUnescaped(std::string_view piece, std::string& out) {
  while (!piece.empty()) {
    const std::size_t at = piece.find(kMetaSpace);
    out += piece.substr(0, at);
    if (at == piece.npos) return;
    out += ' ';
    piece.remove_prefix(at + kMetaSpace.size());
  }
}

}  // namespace

bool IsCharacterLevel(const VocabularySpec& spec) {
  if (spec.kind != VocabularyKind::kSentencePiece) return false;
  for (std::size_t id = 0; id < spec.pieces.size() && id < spec.types.size(); ++id) {
    const std::string_view piece = spec.pieces[id];
    if (!IsText(spec.types[id]) || piece.empty()) continue;
    if (base::DecodeUtf8(piece).bytes != piece.size()) return false;
  }
  return true;
}

Vocabulary::Vocabulary(VocabularySpec spec) : spec_(std::move(spec)) {}

Result<Vocabulary> Vocabulary::Make(VocabularySpec spec) {
  Vocabulary vocabulary(std::move(spec));
  KV_TRY(vocabulary.CheckSizesAndSpecials());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    KV_TRY(vocabulary.CheckToken(id));
  }
  vocabulary.BuildIndex();
  return vocabulary;
}

Result<void> Vocabulary::CheckSizesAndSpecials() const {
  // GGUF ids are 32-bit, and many programs keep them signed.
  constexpr std::size_t kMaxTokens = std::numeric_limits<std::int32_t>::max();
  if (size() == 0 || size() > kMaxTokens) {
    return MakeError(ErrorCode::kBadData, "a vocabulary of {} tokens (allowed: 1 to {})", size(),
                     kMaxTokens);
  }
  if (spec_.scores.size() != size() || spec_.types.size() != size()) {
    return MakeError(ErrorCode::kBadData,
                     "the vocabulary has {} pieces but {} scores and {} types; all must be equal",
                     size(), spec_.scores.size(), spec_.types.size());
  }
  const std::pair<const char*, std::optional<TokenId>> specials[] = {
      {"start (bos)", spec_.bos},
      {"end (eos)", spec_.eos},
      {"end of turn (eot)", spec_.eot},
      {"unknown (unk)", spec_.unk},
      {"padding (pad)", spec_.pad}};
  for (const auto& [name, id] : specials) {
    if (id && *id >= size()) {
      return MakeError(ErrorCode::kBadData, "the {} token has id {} in a vocabulary of {} tokens",
                       name, *id, size());
    }
  }
  for (TokenId id : spec_.untrained) {
    if (id < size()) continue;
    return MakeError(ErrorCode::kBadData, "untrained token {} in a vocabulary of {} tokens", id,
                     size());
  }
  if (spec_.add_bos && !spec_.bos) {
    return MakeError(ErrorCode::kBadData, "add_bos is set but there is no start (bos) token");
  }
  if (spec_.add_eos && !spec_.eos) {
    return MakeError(ErrorCode::kBadData, "add_eos is set but there is no end (eos) token");
  }
  return Success();
}

Result<void> Vocabulary::CheckToken(TokenId id) {
  const std::string& piece = spec_.pieces[id];
  const auto type = static_cast<std::int32_t>(spec_.types[id]);
  if (type < 1 || type > 6) {
    return MakeError(ErrorCode::kBadData, "token {} has type {} (allowed: 1 to 6)", id, type);
  }
  if (!std::isfinite(spec_.scores[id])) {
    return MakeError(ErrorCode::kBadData, "token {} has score {}, which is not finite", id,
                     spec_.scores[id]);
  }
  if (const auto at = base::FirstInvalidUtf8(piece)) {
    return MakeError(ErrorCode::kBadData, "token {} is not valid UTF-8: byte 0x{:02X} at offset {}",
                     id, static_cast<std::uint8_t>(piece[*at]), *at);
  }
  if (IsText(spec_.types[id]) && piece.empty()) {
    return MakeError(ErrorCode::kBadData, "token {} is a piece of text but empty", id);
  }
  if (spec_.types[id] == TokenType::kByte) {
    const auto byte = ParseBytePiece(piece);
    if (!byte) {
      return MakeError(ErrorCode::kBadData,
                       "token {} is a byte token but its piece is not one of <0x00> to <0xFF>", id);
    }
    if (byte_tokens_[*byte]) {
      return MakeError(ErrorCode::kBadData, "tokens {} and {} are both the byte token {}",
                       *byte_tokens_[*byte], id, piece);
    }
    byte_tokens_[*byte] = id;
  }
  return Success();
}

void Vocabulary::AppendText(TokenId id) {
  const std::string& piece = spec_.pieces[id];
  switch (spec_.types[id]) {
    case TokenType::kNormal:
      if (spec_.kind == VocabularyKind::kSentencePiece) {
        AppendUnescaped(piece, bytes_);
      } else {
        bytes_ += BytesOfPiece(piece).value_or(piece);
      }
      break;
    case TokenType::kUserDefined:
      bytes_ += piece;
      break;
    case TokenType::kByte:
      bytes_ += static_cast<char>(*ParseBytePiece(piece));
      break;
    case TokenType::kUnknown:
    case TokenType::kControl:
    case TokenType::kUnused:
      break;
  }
}

void Vocabulary::BuildIndex() {
  offsets_.reserve(size() + 1);
  for (TokenId id = 0; id < size(); ++id) {
    offsets_.push_back(bytes_.size());
    AppendText(id);
    if (IsText(spec_.types[id])) by_text_.push_back(id);
  }
  offsets_.push_back(bytes_.size());
  std::stable_sort(by_text_.begin(), by_text_.end(),
                   [this](TokenId a, TokenId b) { return Bytes(a) < Bytes(b); });
}

TokenType Vocabulary::type(TokenId id) const {
  KV_CHECK(id < size());
  return spec_.types[id];
}

const std::string& Vocabulary::piece(TokenId id) const {
  KV_CHECK(id < size());
  return spec_.pieces[id];
}

float Vocabulary::score(TokenId id) const {
  KV_CHECK(id < size());
  return spec_.scores[id];
}

std::string_view Vocabulary::Bytes(TokenId id) const {
  KV_CHECK(id + std::size_t{1} < offsets_.size());
  return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

std::optional<TokenId> Vocabulary::FindPiece(std::string_view text) const {
  const auto found =
      std::lower_bound(by_text_.begin(), by_text_.end(), text,
                       [this](TokenId id, std::string_view wanted) { return Bytes(id) < wanted; });
  if (found == by_text_.end() || Bytes(*found) != text) return std::nullopt;
  return *found;
}

Result<void> Vocabulary::CheckIds(std::span<const TokenId> ids) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= size()) {
      return MakeError(ErrorCode::kUsage, "token id {} at index {} (allowed: 0 to {})", ids[i], i,
                       size() - 1);
    }
  }
  return Success();
}

}  // namespace kvasir::tokenizer
