#include "tokenizer/byte_level_tokenizer.h"

#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/text_faults.h"
#include "tokenizer/unicode.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using base::Success;

std::uint64_t Key(TokenId left, TokenId right) { return std::uint64_t{left} << 32 | right; }

// Untrusted text for a message.
std::string Short(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;
  return base::ReplaceInvalidUtf8(text.substr(0, kMostBytes)) +
         (text.size() > kMostBytes ? "…" : "");
}

std::string BytesOf(std::string_view piece) {
  return BytesOfPiece(piece).value_or(std::string(piece));
}

}  // namespace

ByteLevelTokenizer::ByteLevelTokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), pieces_(vocabulary_), user_tokens_(vocabulary_) {}

Result<std::unique_ptr<ByteLevelTokenizer>> ByteLevelTokenizer::Make(Vocabulary vocabulary) {
  if (vocabulary.spec().kind != VocabularyKind::kByteLevel) {
    return MakeError(ErrorCode::kBadData, "the vocabulary is not byte-level");
  }
  std::unique_ptr<ByteLevelTokenizer> tokenizer(new ByteLevelTokenizer(std::move(vocabulary)));
  const std::size_t count = tokenizer->vocabulary_.spec().merges.size();
  tokenizer->merges_.reserve(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    KV_TRY(tokenizer->AddMerge(rank));
  }
  return tokenizer;
}

Result<void> ByteLevelTokenizer::AddMerge(std::size_t rank) {
  const std::string_view merge = vocabulary_.spec().merges[rank];
  const std::size_t blank = merge.find(' ');
  if (blank == 0 || blank == merge.npos || blank + 1 == merge.size()) {
    return MakeError(ErrorCode::kBadData,
                     "merge {} is '{}': it must be two tokens with a blank between them", rank,
                     Short(merge));
  }
  const std::string left = BytesOf(merge.substr(0, blank));
  const std::string right = BytesOf(merge.substr(blank + 1));
  const TokenId left_id = pieces_.Find(left);
  const TokenId right_id = pieces_.Find(right);
  const TokenId merged_id = pieces_.Find(left + right);
  if (left_id == kNoToken || right_id == kNoToken || merged_id == kNoToken) {
    return MakeError(ErrorCode::kBadData,
                     "merge {} is '{}': both parts and the whole must be normal tokens", rank,
                     Short(merge));
  }
  merges_.emplace(Key(left_id, right_id), SymbolMerge{-static_cast<double>(rank), merged_id});
  return Success();
}

Result<std::vector<TokenId>> ByteLevelTokenizer::Encode(std::string_view text) const {
  KV_TRY(CheckUtf8(text));
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at < text.size();) {
    const UserTokens::Match match = user_tokens_.FindFirst(text, at);
    const std::string_view stretch = text.substr(at, match.begin - at);
    if (vocabulary_.spec().pre == PreTokenizer::kQwen2) {
      KV_TRY(AppendStretch(ToNfc(stretch), ids));
    } else {
      KV_TRY(AppendStretch(stretch, ids));
    }
    if (match.bytes > 0) ids.push_back(match.id);
    at = match.begin + match.bytes;
  }
  return ids;
}

Result<void> ByteLevelTokenizer::AppendStretch(std::string_view text,
                                               std::vector<TokenId>& ids) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = FirstWordBytes(vocabulary_.spec().pre, text.substr(at));
    KV_TRY(AppendWord(text, at, bytes, ids));
    at += bytes;
  }
  return Success();
}

Result<void> ByteLevelTokenizer::AppendWord(std::string_view text, std::size_t begin,
                                            std::size_t bytes, std::vector<TokenId>& ids) const {
  if (vocabulary_.spec().pre == PreTokenizer::kLlama3) {
    const TokenId whole = pieces_.Find(text.substr(begin, bytes));
    if (whole != kNoToken) {
      ids.push_back(whole);
      return Success();
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(bytes);
  for (std::size_t at = begin; at < begin + bytes; ++at) {
    const TokenId id = pieces_.Find(text.substr(at, 1));
    if (id == kNoToken) {
      while ((text[at] & 0xC0) == 0x80) --at;
      return MissingCharacter(text, at);
    }
    symbols.push_back({at, 1, id});
  }
  MergeSymbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const auto found = merges_.find(Key(left.id, right.id));
    return found == merges_.end() ? std::nullopt : std::optional(found->second);
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes > 0) ids.push_back(symbol.id);
  }
  return Success();
}

}  // namespace kvasir::tokenizer
