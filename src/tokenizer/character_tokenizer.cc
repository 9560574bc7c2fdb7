#include "tokenizer/character_tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/text_faults.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

}  // namespace

CharacterTokenizer::CharacterTokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {}

Result<std::unique_ptr<CharacterTokenizer>> CharacterTokenizer::Make(Vocabulary vocabulary) {
  if (vocabulary.spec().kind != VocabularyKind::kSentencePiece || vocabulary.add_space_prefix()) {
    return MakeError(ErrorCode::kBadData,
                     "the vocabulary is not character-level: it is of bytes, or its texts are led "
                     "by a space");
  }
  std::unique_ptr<CharacterTokenizer> tokenizer(new CharacterTokenizer(std::move(vocabulary)));
  const Vocabulary& tokens = tokenizer->vocabulary_;
  auto& characters = tokenizer->characters_;
  for (TokenId id = 0; id < tokens.size(); ++id) {
    const TokenType type = tokens.type(id);
    if (type != TokenType::kNormal && type != TokenType::kUserDefined) continue;
    const std::string_view text = tokens.Bytes(id);
    const base::Utf8Step step = base::DecodeUtf8(text);
    if (step.bytes != text.size()) {
      return MakeError(ErrorCode::kBadData,
                       "the vocabulary is not character-level: token {} holds {} characters", id,
                       base::SplitCharacters(text).size());
    }
    characters.emplace_back(step.code_point, id);
  }
  std::sort(characters.begin(), characters.end());
  characters.erase(std::unique(characters.begin(), characters.end(),
                               [](const auto& a, const auto& b) { return a.first == b.first; }),
                   characters.end());
  return tokenizer;
}

bool CharacterTokenizer::AppendBytes(std::string_view character, std::vector<TokenId>& ids) const {
  for (const char c : character) {
    const auto id = vocabulary_.ByteToken(static_cast<std::uint8_t>(c));
    if (!id) return false;
    ids.push_back(*id);
  }
  return true;
}

Result<std::vector<TokenId>> CharacterTokenizer::Encode(std::string_view text) const {
  KV_TRY(CheckUtf8(text));
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at < text.size();) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    const auto found = std::lower_bound(
        characters_.begin(), characters_.end(), step.code_point,
        [](const auto& entry, std::uint32_t wanted) { return entry.first < wanted; });
    const std::string_view character = text.substr(at, step.bytes);
    if (found != characters_.end() && found->first == step.code_point) {
      ids.push_back(found->second);
    } else if (!AppendBytes(character, ids)) {
      return MissingCharacter(text, at);
    }
    at += step.bytes;
  }
  return ids;
}

}  // namespace kvasir::tokenizer
