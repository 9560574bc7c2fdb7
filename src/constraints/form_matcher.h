// Forms: texts whose every place is either set by the program or one Han character of the model's
// choice. Acrostics and the fixed verse forms are forms.
#ifndef KVASIR_CONSTRAINTS_FORM_MATCHER_H_
#define KVASIR_CONSTRAINTS_FORM_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "constraints/constraint.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

inline constexpr std::uint32_t kComma = 0xFF0C;     // ，
inline constexpr std::uint32_t kFullStop = 0x3002;  // 。

// One line of a form: the head if given, Han characters up to `chars` in all, the punctuation.
struct FormLine {
  std::optional<std::uint32_t> head;  // a Han character, also one the vocabulary lacks
  std::size_t chars = 0;              // >= 1, with the head, without the punctuation
  std::uint32_t punctuation = 0;
};

// Where a slot stands.
struct FormPlace {
  std::size_t line = 0;    // index
  std::size_t column = 0;  // index of the character in its line; `chars` for the punctuation
  bool begins = false;     // Of a character's tokens the first (the others are its later bytes).
};

// A form compiled for one vocabulary. Immutable, thread-safe; keeps nothing of the vocabulary.
// One slot is one token:
//   fixed  the program's: a head or punctuation, as its token, or, if the vocabulary lacks the
//          character, as its UTF-8 byte tokens in order;
//   free   any normal or user-defined token that is exactly one Han character; so no punctuation,
//          line break, byte, control, unknown or never-trained token. Of tokens with the same bytes
//          all are allowed.
// If only one token can fill the free slots, they are fixed.
class CompiledForm {
 public:
  // kUsage if the vocabulary cannot write a fixed character (neither token nor bytes), or has no
  // token for free slots though there are some.
  static base::Result<CompiledForm> Compile(const tokenizer::Vocabulary& vocabulary,
                                            std::span<const FormLine> lines);

  // The token of each slot; nothing for a free one.
  std::span<const std::optional<base::TokenId>> slots() const { return slots_; }
  std::span<const FormPlace> places() const { return places_; }
  const base::TokenMask& free_tokens() const { return free_tokens_; }

 private:
  explicit CompiledForm(std::size_t vocab_size) : free_tokens_(vocab_size) {}

  base::Result<void> AppendFixed(const tokenizer::Vocabulary& vocabulary, std::uint32_t code_point,
                                 FormPlace place);
  void AppendSlot(std::optional<base::TokenId> token, FormPlace place) {
    slots_.push_back(token);
    places_.push_back(place);
  }

  std::vector<std::optional<base::TokenId>> slots_;
  std::vector<FormPlace> places_;  // [slots]
  base::TokenMask free_tokens_;    // [vocab]
};

// Complete after the last slot; may not end before. Mask costs one copy of the bits.
class FormMatcher final : public Matcher {
 public:
  explicit FormMatcher(std::shared_ptr<const CompiledForm> form) : form_(std::move(form)) {}

  bool Accept(base::TokenId token) override;
  void Mask(base::TokenMask& mask) const override;
  void Rollback(std::size_t n) override;
  bool MayEnd() const override { return IsComplete(); }
  bool IsComplete() const override { return position_ == form_->slots().size(); }
  std::vector<base::TokenId> ForcedTokens() const override;
  std::size_t accepted_tokens() const override { return position_; }
  std::optional<std::size_t> MaxRemainingTokens() const override {
    return form_->slots().size() - position_;
  }
  std::unique_ptr<Matcher> Clone() const override { return std::make_unique<FormMatcher>(*this); }

 private:
  std::shared_ptr<const CompiledForm> form_;
  std::size_t position_ = 0;  // the next slot, <= slots().size()
};

// Compiles the lines and returns a matcher at their start.
base::Result<std::unique_ptr<Matcher>> MakeFormMatcher(const tokenizer::Vocabulary& vocabulary,
                                                       std::span<const FormLine> lines);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_FORM_MATCHER_H_
