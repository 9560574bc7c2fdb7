#include "constraints/drawable_tokens.h"

#include <string_view>

#include "base/utf8.h"
#include "constraints/han_character.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

bool IsText(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

// The text for a message: one character is described, more are quoted.
std::string Quoted(std::string_view text) {
  const base::Utf8Step step = base::DecodeUtf8(text);
  if (step.status == base::Utf8Status::kOk && step.bytes == text.size()) {
    return DescribeCharacter(step.code_point);
  }
  std::string quoted = "'";
  for (char c : base::ReplaceInvalidUtf8(text))
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return quoted + "'";
}

}  // namespace

bool IsCharacterLevel(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) != TokenType::kNormal) continue;
    const std::string_view bytes = vocabulary.Bytes(id);
    if (bytes.empty() || base::DecodeUtf8(bytes).bytes != bytes.size()) return false;
  }
  return true;
}

TokenMask DefaultMask(const Vocabulary& vocabulary, std::span<const TokenId> end_tokens) {
  const bool characters = IsCharacterLevel(vocabulary);
  TokenMask mask(vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool trained = type != TokenType::kUnknown && type != TokenType::kUnused;
    if (characters ? IsText(type) : trained) mask.Allow(id);
  }
  for (TokenId id : vocabulary.spec().untrained) mask.Ban(id);
  for (TokenId id : end_tokens) mask.Allow(id);
  return mask;
}

base::Result<std::vector<TokenId>> BannedTokens(const Vocabulary& vocabulary,
                                                std::span<const std::string> texts) {
  TokenMask banned(vocabulary.size());
  for (const std::string& text : texts) {
    if (text.empty()) {
      return MakeError(ErrorCode::kUsage, "an empty text cannot be banned");
    }
    if (!vocabulary.FindPiece(text)) {
      return MakeError(ErrorCode::kUsage, "{} cannot be banned: it is not one token of this model",
                       Quoted(text));
    }
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      // Single bytes could spell it too, where a constraint lets them be drawn.
      const std::string_view bytes = vocabulary.Bytes(id);
      const bool spells = vocabulary.type(id) == TokenType::kByte && text.find(bytes) != text.npos;
      const bool holds = IsText(vocabulary.type(id)) && bytes.find(text) != bytes.npos;
      if (holds || spells) banned.Allow(id);
    }
  }
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (banned.Test(id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace kvasir::constraints
