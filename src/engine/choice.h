// Choice: one continuation while it is being generated.
#ifndef KVASIR_ENGINE_CHOICE_H_
#define KVASIR_ENGINE_CHOICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_mask.h"
#include "constraints/constraint.h"
#include "engine/request.h"
#include "sampling/sampler.h"
#include "sampling/stop_strings.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::engine {

// The error of logits after this position, which it names if they are no distribution.
base::Error AtPosition(std::size_t position, base::Error error);

// Knows nothing of caches and batches: it says which positions must be computed, takes their logits
// in order, and decides tokens. Single-threaded; neither copied nor moved.
//
// Its text is the prompt, then the tokens decided. Tokens that the constraint forces are decided
// ahead of their logits, so that they can be computed together; a token is settled once its
// log-probability is known too.
//
// Invariants:
//   1. prompt size <= settled size <= text size <= limit; limit = prompt + max_tokens, at most the
//      context unless it rolls. start = WindowStart(settled size).
//   2. An unfinished choice wants at least one row: that of position settled size − 1.
class Choice {
 public:
  struct Settled {
    GeneratedToken token;
    std::string text;  // What became certain with it: valid UTF-8.
  };

  // Requires a checked request; vocabulary, request and drawable ([vocab]: what may be drawn where
  // there is no constraint) must outlive the choice.
  Choice(const GenerateRequest& request, std::uint32_t index, const model::ModelShape& shape,
         const tokenizer::Vocabulary& vocabulary, const base::TokenMask& drawable);
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;

  bool finished() const { return finish_.has_value(); }
  // What the next token is predicted from: all of the text, or what rolling leaves of it. Positions
  // below are counted from its start.
  std::span<const TokenId> text() const { return std::span(text_).subspan(start_); }
  std::size_t start() const { return start_; }  // Of text() in the whole text.
  std::size_t settled() const { return settled_; }
  bool has_tokens() const { return settled_ > request_.prompt.size(); }
  std::uint32_t index() const { return index_; }
  // The reason, once finished.
  std::optional<FinishReason> finish() const { return finish_; }

  // Positions [0, target()) must be computed, and the logits of [first_row(), target()) taken.
  // Only for an unfinished choice.
  std::size_t target() const {
    const std::size_t end = DrawsNext() ? text_.size() : text_.size() - 1;
    return std::min(end - start_, context_);  // Forced tokens may lie beyond: later.
  }
  std::size_t first_row() const { return settled_ - 1 - start_; }

  // Does the arithmetic of the next Take ahead, on the same row, where no constraint has a say in
  // it. Choices may do so on several threads, each on one.
  void Prepare(std::span<const float> row);
  // Takes the logits [vocab] after position first_row(): settles the token that follows. kNumeric
  // naming the position if a logit is not finite; kUsage if nothing may be drawn.
  base::Result<Settled> Take(std::span<const float> row);

  // Ends an unfinished choice from outside; returns the text held back until now.
  std::string Abandon(FinishReason reason);

 private:
  // What a row of logits decides.
  struct Decision {
    base::Result<sampling::DrawnToken> drawn;
    base::Result<std::vector<sampling::TokenLogProb>> top;
  };
  Decision Decide(std::span<const float> row);
  // Whether the model's choice follows the last token decided.
  bool DrawsNext() const;
  void AppendForced();
  base::Result<sampling::DrawnToken> Draw(std::span<const float> row);
  bool EndsWith(TokenId token) const;
  // Takes what was generated before as if it were now, but for its text, which has been told.
  void Replay(std::span<const TokenId> tokens);
  std::size_t prompt_size() const { return request_.prompt.size() - request_.continued; }
  // The text that is certain after this token. Sets finish_.
  std::string Settle(TokenId token, bool drawn);

  const GenerateRequest& request_;
  const std::uint32_t index_;
  const base::TokenMask& drawable_;
  const std::size_t limit_;  // of the text's tokens
  const std::size_t context_;
  std::vector<TokenId> text_;
  std::size_t start_;
  std::size_t settled_;
  std::optional<FinishReason> finish_;
  sampling::Sampler sampler_;
  std::unique_ptr<constraints::Matcher> matcher_;  // Null without a constraint.
  base::TokenMask mask_;                           // [vocab] with a constraint, else empty
  tokenizer::StreamDecoder decoder_;
  sampling::StopMatcher stop_;
  std::optional<Decision> prepared_;
  std::size_t told_ = 0;  // Bytes of the text to come that were told before, at the text's end.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_CHOICE_H_
