#include "tokenizer/sentencepiece_tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/symbol_merges.h"
#include "tokenizer/text_faults.h"

namespace kvasir::tokenizer {

using base::Result;
using base::Success;

SentencePieceTokenizer::SentencePieceTokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), pieces_(vocabulary_), user_tokens_(vocabulary_) {}

Result<std::unique_ptr<SentencePieceTokenizer>> SentencePieceTokenizer::Make(
    Vocabulary vocabulary) {
  if (vocabulary.spec().kind != VocabularyKind::kSentencePiece) {
    return base::MakeError(base::ErrorCode::kBadData, "the vocabulary is not of SentencePiece's");
  }
  return std::unique_ptr<SentencePieceTokenizer>(new SentencePieceTokenizer(std::move(vocabulary)));
}

Result<std::vector<TokenId>> SentencePieceTokenizer::Encode(std::string_view text) const {
  KV_TRY(CheckUtf8(text));
  std::vector<TokenId> ids;
  if (text.empty()) return ids;
  std::string led;
  if (vocabulary_.add_space_prefix()) text = led.append(1, ' ').append(text);
  for (std::size_t at = 0; at < text.size();) {
    const UserTokens::Match match = user_tokens_.FindFirst(text, at);
    KV_TRY(AppendStretch(text, at, match.begin, ids));
    if (match.bytes > 0) ids.push_back(match.id);
    at = match.begin + match.bytes;
  }
  return ids;
}

Result<void> SentencePieceTokenizer::AppendStretch(std::string_view text, std::size_t begin,
                                                   std::size_t end,
                                                   std::vector<TokenId>& ids) const {
  std::vector<Symbol> symbols;
  for (std::size_t at = begin; at < end; at += symbols.back().bytes) {
    const std::size_t bytes = base::DecodeUtf8(text.substr(at)).bytes;
    symbols.push_back({at, bytes, pieces_.Find(text.substr(at, bytes))});
  }
  MergeSymbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const TokenId id = pieces_.Find(text.substr(left.begin, left.bytes + right.bytes));
    return id == kNoToken ? std::nullopt : std::optional(SymbolMerge{vocabulary_.score(id), id});
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes == 0) continue;
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
    } else {
      KV_TRY(AppendBytes(text, symbol, ids));
    }
  }
  return Success();
}

Result<void> SentencePieceTokenizer::AppendBytes(std::string_view text, const Symbol& character,
                                                 std::vector<TokenId>& ids) const {
  for (const char c : text.substr(character.begin, character.bytes)) {
    const auto id = vocabulary_.ByteToken(static_cast<std::uint8_t>(c));
    if (!id) {
      const std::size_t lead = vocabulary_.add_space_prefix() && character.begin > 0 ? 1 : 0;
      return MissingCharacter(text.substr(lead), character.begin - lead);
    }
    ids.push_back(*id);
  }
  return Success();
}

}  // namespace kvasir::tokenizer
