#include "constraints/form_matcher.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "constraints/han_character.h"

namespace kvasir::constraints {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;
using base::TokenMask;
using tokenizer::Vocabulary;

}  // namespace

base::Result<CompiledForm> CompiledForm::Compile(const Vocabulary& vocabulary,
                                                 std::span<const FormLine> lines) {
  CompiledForm form(vocabulary.size());
  TokenMask untrained(vocabulary.size());
  for (TokenId id : vocabulary.spec().untrained) untrained.Allow(id);
  std::size_t free_count = 0;
  TokenId last_free = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    // Only normal and user-defined tokens have the bytes of a whole character (Vocabulary::Bytes).
    if (!SingleHanCharacter(vocabulary.Bytes(id)) || untrained.Test(id)) continue;
    form.free_tokens_.Allow(id);
    last_free = id;
    ++free_count;
  }
  const std::optional<TokenId> free_slot =
      free_count == 1 ? std::optional<TokenId>(last_free) : std::nullopt;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const FormLine& line = lines[i];
    KV_CHECK(line.chars >= 1);
    if (line.head) {
      KV_TRY(form.AppendFixed(vocabulary, *line.head, {i, 0, true}));
    }
    const std::size_t first = line.head ? 1 : 0;
    if (first < line.chars && free_count == 0) {
      return MakeError(ErrorCode::kUsage,
                       "this model cannot write verse: none of its {} tokens is one Han character",
                       vocabulary.size());
    }
    for (std::size_t column = first; column < line.chars; ++column) {
      form.AppendSlot(free_slot, {i, column, true});
    }
    KV_TRY(form.AppendFixed(vocabulary, line.punctuation, {i, line.chars, true}));
  }
  return form;
}

base::Result<void> CompiledForm::AppendFixed(const Vocabulary& vocabulary, std::uint32_t code_point,
                                             FormPlace place) {
  std::string bytes;
  base::AppendUtf8(code_point, bytes);
  if (const std::optional<TokenId> token = vocabulary.FindPiece(bytes)) {
    AppendSlot(token, place);
    return base::Success();
  }
  for (char byte : bytes) {
    const std::optional<TokenId> token = vocabulary.ByteToken(static_cast<std::uint8_t>(byte));
    if (!token) {
      return MakeError(ErrorCode::kUsage,
                       "the model's vocabulary has neither {} nor byte tokens to write it with",
                       DescribeCharacter(code_point));
    }
    AppendSlot(token, place);
    place.begins = false;
  }
  return base::Success();
}

bool FormMatcher::Accept(TokenId token) {
  if (IsComplete() || token >= form_->free_tokens().size()) return false;
  const std::optional<TokenId>& slot = form_->slots()[position_];
  if (slot ? *slot != token : !form_->free_tokens().Test(token)) return false;
  ++position_;
  return true;
}

void FormMatcher::Mask(TokenMask& mask) const {
  KV_CHECK(mask.size() == form_->free_tokens().size());
  if (!IsComplete() && !form_->slots()[position_]) {
    mask = form_->free_tokens();
    return;
  }
  mask.ClearAll();
  if (!IsComplete()) mask.Allow(*form_->slots()[position_]);
}

void FormMatcher::Rollback(std::size_t n) {
  KV_CHECK(n <= position_);
  position_ -= n;
}

std::vector<TokenId> FormMatcher::ForcedTokens() const {
  std::vector<TokenId> tokens;
  for (const std::optional<TokenId>& slot : form_->slots().subspan(position_)) {
    if (!slot) break;
    tokens.push_back(*slot);
  }
  return tokens;
}

base::Result<std::unique_ptr<Matcher>> MakeFormMatcher(const Vocabulary& vocabulary,
                                                       std::span<const FormLine> lines) {
  KV_TRY(CompiledForm form, CompiledForm::Compile(vocabulary, lines));
  return std::unique_ptr<Matcher>(
      std::make_unique<FormMatcher>(std::make_shared<const CompiledForm>(std::move(form))));
}

}  // namespace kvasir::constraints
