#include "engine/prompt_scores.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/choice.h"
#include "kvcache/prompt_log_probs.h"
#include "sampling/log_probs.h"

namespace kvasir::engine {

void PromptScores::TakeFromCache(kvcache::SequenceManager& cache, kvcache::SequenceId id,
                                 std::size_t found) {
  const std::size_t top = std::min(request_.top_logprobs, vocab_);
  for (std::size_t t = tokens_.size() + 1; t < found; ++t) {
    const kvcache::PromptLogProbs* kept = cache.LogProbs(id, t);
    if (kept == nullptr || kept->best.size() < top) break;
    GeneratedToken token = {.id = request_.prompt[t], .logprob = kept->logprob};
    for (const kvcache::KeptLogProb& other : std::span(kept->best).first(top)) {
      token.top.push_back({other.id, other.logprob, other.prob});
    }
    // Those before it, scored but not left when the sequence gave way, are with the cache too.
    for (; kept_ < tokens_.size(); ++kept_) Trim(tokens_[kept_]);
    tokens_.push_back(std::move(token));
    kept_ = tokens_.size();
  }
  cache.Truncate(id, std::min(found, tokens_.size()));
}

base::Result<void> PromptScores::Take(std::size_t position, std::span<const float> row) {
  if (position < tokens_.size()) return base::Success();  // Scored before it gave way.
  KV_CHECK(position == tokens_.size());
  GeneratedToken token = {.id = request_.prompt[position + 1]};
  const auto logprob = sampling::LogProb(row, token.id);
  if (!logprob) return AtPosition(position, logprob.error());
  token.logprob = logprob.value();
  // As many as the cache keeps, so that they serve others too.
  const std::size_t most = std::max(request_.top_logprobs, kvcache::kKeptAlternatives);
  KV_TRY(token.top, sampling::TopLogProbs(row, std::min(most, vocab_)));
  tokens_.push_back(std::move(token));
  return base::Success();
}

void PromptScores::Trim(GeneratedToken& token) const {
  token.top.resize(std::min(token.top.size(), request_.top_logprobs));
}

bool PromptScores::LeaveWith(kvcache::SequenceManager& cache, kvcache::SequenceId id) {
  // The token at t is scored by the row before it, and has a place in the cache only after that.
  while (kept_ < tokens_.size() && kept_ + 1 < std::as_const(cache).cache(id).length()) {
    GeneratedToken& token = tokens_[kept_++];
    kvcache::PromptLogProbs kept = {.logprob = token.logprob};
    for (const sampling::TokenLogProb& other :
         std::span(token.top).first(std::min(token.top.size(), kvcache::kKeptAlternatives))) {
      kept.best.push_back({other.id, other.logprob, other.prob});
    }
    cache.KeepLogProbs(id, kept_, std::move(kept));
    Trim(token);
  }
  return kept_ + 1 == request_.prompt.size();
}

}  // namespace kvasir::engine
