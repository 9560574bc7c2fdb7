#include "engine/choice.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {
namespace {

// Whether the prompt holds no text, a start token at most: what is drawn begins the text then.
tokenizer::StreamDecoder::From TextBegins(std::span<const TokenId> prompt,
                                          const tokenizer::Vocabulary& vocabulary) {
  for (const TokenId token : prompt) {
    if (!vocabulary.Bytes(token).empty()) return tokenizer::StreamDecoder::From::kMiddle;
  }
  return tokenizer::StreamDecoder::From::kStart;
}

}  // namespace

base::Error AtPosition(std::size_t position, base::Error error) {
  if (error.code == base::ErrorCode::kNumeric) {
    error.message = fmt::format("the logits after position {} are no distribution: {}", position,
                                error.message);
  }
  return error;
}

Choice::Choice(const GenerateRequest& request, std::uint32_t index, const model::ModelShape& shape,
               const tokenizer::Vocabulary& vocabulary, const base::TokenMask& drawable)
    : request_(request),
      index_(index),
      drawable_(drawable),
      limit_(LongestText(request, shape)),
      context_(shape.context),
      text_(request.prompt),
      start_(WindowStart(request.prompt.size(), shape.context)),
      settled_(request.prompt.size()),
      sampler_(request.sampling, request.seed, index),
      decoder_(vocabulary, TextBegins(std::span(request.prompt).first(prompt_size()), vocabulary)),
      stop_(sampling::StopMatcher::Create(request.stops).value()) {
  constexpr std::size_t kFirst = 4096;
  text_.reserve(std::min(limit_, request.prompt.size() + kFirst));
  if (request.constraint) {
    matcher_ = request.constraint->Clone();
    mask_ = base::TokenMask(vocabulary.size());
  }
  Replay(std::span(request.prompt).subspan(prompt_size()));
  if (finish_) return;
  if (matcher_ && matcher_->IsComplete()) {
    finish_ = FinishReason::kConstraint;
  } else if (text_.size() == limit_) {
    finish_ = FinishReason::kLength;
  } else {
    AppendForced();
  }
}

void Choice::Replay(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (EndsWith(token)) {
      finish_ = FinishReason::kStop;
      return;
    }
    stop_.Feed(decoder_.Append(token));
    if (stop_.stopped()) {
      finish_ = FinishReason::kStop;
      return;
    }
    if (matcher_) KV_CHECK(matcher_->Accept(token));
  }
  told_ = stop_.held_bytes();
}

bool Choice::DrawsNext() const {
  return text_.size() < limit_ && !(matcher_ && matcher_->IsComplete());
}

void Choice::AppendForced() {
  if (!matcher_) return;
  for (const TokenId token : matcher_->ForcedTokens()) {
    if (text_.size() == limit_) return;
    KV_CHECK(matcher_->Accept(token));
    text_.push_back(token);
  }
}

bool Choice::EndsWith(TokenId token) const {
  // Inside an unfinished constraint an end token is a token like any other (Case C113).
  if (matcher_ && !matcher_->MayEnd()) return false;
  const auto& ends = request_.end_tokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

base::Result<sampling::DrawnToken> Choice::Draw(std::span<const float> row) {
  const base::TokenMask* mask = &drawable_;
  if (matcher_) {
    matcher_->Mask(mask_);
    KV_TRY(matcher_->Status());
    if (matcher_->MayEnd()) {
      for (const TokenId token : request_.end_tokens) mask_.Allow(token);
    }
    mask = &mask_;
  }
  const auto position = static_cast<std::uint32_t>(text_.size());
  return sampler_.Draw(row, text_, position, mask, prompt_size());
}

Choice::Decision Choice::Decide(std::span<const float> row) {
  Decision decision = {Draw(row), std::vector<sampling::TokenLogProb>()};
  if (decision.drawn && request_.top_logprobs > 0) {
    decision.top = sampling::TopLogProbs(row, request_.top_logprobs);
  }
  return decision;
}

void Choice::Prepare(std::span<const float> row) {
  if (finished() || matcher_ || settled_ != text_.size()) return;
  prepared_.emplace(Decide(row));
}

base::Result<Choice::Settled> Choice::Take(std::span<const float> row) {
  KV_CHECK(!finished());
  GeneratedToken token;
  const bool drawn = settled_ == text_.size();
  if (drawn) {
    Decision decision = prepared_ ? *std::exchange(prepared_, std::nullopt) : Decide(row);
    if (!decision.drawn) return AtPosition(settled_ - 1, decision.drawn.error());
    token.id = decision.drawn.value().token;
    token.logprob = decision.drawn.value().logprob;
    token.candidates = decision.drawn.value().candidates;
    KV_TRY(token.top, std::move(decision.top));
    text_.push_back(token.id);
  } else {
    token.id = text_[settled_];
    const auto logprob = sampling::LogProb(row, token.id);
    if (!logprob) return AtPosition(settled_ - 1, logprob.error());
    token.logprob = logprob.value();
    if (request_.top_logprobs > 0) {
      KV_TRY(token.top, sampling::TopLogProbs(row, request_.top_logprobs));
    }
  }
  ++settled_;
  start_ = WindowStart(settled_, context_);
  std::string piece = Settle(token.id, drawn);
  const std::size_t told = std::min(told_, piece.size());
  piece.erase(0, told);
  told_ -= told;
  return Settled{std::move(token), std::move(piece)};
}

std::string Choice::Settle(TokenId token, bool drawn) {
  std::string piece;
  if (drawn && EndsWith(token)) {
    finish_ = FinishReason::kStop;
  } else {
    piece = stop_.Feed(decoder_.Append(token));
    if (stop_.stopped()) {
      finish_ = FinishReason::kStop;
      return piece;
    }
    if (drawn && matcher_) {
      KV_CHECK(matcher_->Accept(token));
      AppendForced();
    }
    if (settled_ == text_.size() && !DrawsNext()) {
      const bool complete = matcher_ && matcher_->IsComplete();
      finish_ = complete ? FinishReason::kConstraint : FinishReason::kLength;
    }
  }
  if (finished()) {
    piece += stop_.Feed(decoder_.Flush());
    piece += stop_.Finish();
  }
  return piece;
}

std::string Choice::Abandon(FinishReason reason) {
  KV_CHECK(!finished());
  finish_ = reason;
  std::string rest = stop_.Feed(decoder_.Flush());
  rest += stop_.Finish();
  rest.erase(0, std::min(told_, rest.size()));
  return rest;
}

}  // namespace kvasir::engine
