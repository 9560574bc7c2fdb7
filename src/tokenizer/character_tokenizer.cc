#include "tokenizer/character_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

// "'d' (U+0064)", or the number alone for what would spoil a line on a terminal.
std::string Describe(std::uint32_t code_point, std::string_view character) {
  const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
                       code_point == 0x2028 || code_point == 0x2029;
  return control ? fmt::format("U+{:04X}", code_point)
                 : fmt::format("'{}' (U+{:04X})", character, code_point);
}

}  // namespace

CharacterTokenizer::CharacterTokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {}

Result<std::unique_ptr<CharacterTokenizer>> CharacterTokenizer::Make(Vocabulary vocabulary) {
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
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at < text.size();) {
    const base::Utf8Step step = base::DecodeUtf8(text.substr(at));
    if (step.status != base::Utf8Status::kOk) {
      return MakeError(ErrorCode::kBadData, "not valid UTF-8: byte 0x{:02X} at offset {}",
                       static_cast<std::uint8_t>(text[at]), at);
    }
    const auto found = std::lower_bound(
        characters_.begin(), characters_.end(), step.code_point,
        [](const auto& entry, std::uint32_t wanted) { return entry.first < wanted; });
    const std::string_view character = text.substr(at, step.bytes);
    if (found != characters_.end() && found->first == step.code_point) {
      ids.push_back(found->second);
    } else if (!AppendBytes(character, ids)) {
      return MakeError(ErrorCode::kUsage,
                       "the character {} at offset {} is not in the vocabulary, which has no byte "
                       "tokens for it",
                       Describe(step.code_point, character), at);
    }
    at += step.bytes;
  }
  return ids;
}

}  // namespace kvasir::tokenizer
