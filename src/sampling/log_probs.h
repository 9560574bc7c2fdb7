// Log-probabilities of the model's own distribution: natural logarithms of softmax(logits), before
// any penalty, temperature or filter. What next-token tables and reported log-probabilities show.
#ifndef KVASIR_SAMPLING_LOG_PROBS_H_
#define KVASIR_SAMPLING_LOG_PROBS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace kvasir::sampling {

struct TokenLogProb {
  base::TokenId id = 0;
  double logprob = 0;  // nats, <= 0
  double prob = 0;     // 0 … 1
};

// ln Σ e^logit in two parts, so that a log-probability keeps its last bits:
// logprob(i) = (logit_i − max) − log_sum, never above 0.
struct LogNormaliser {
  float max = 0;       // largest logit
  double log_sum = 0;  // ln Σ e^(logit − max), >= 0

  double LogProb(float logit) const {
    return (static_cast<double>(logit) - static_cast<double>(max)) - log_sum;
  }
};

// All functions here are thread-safe, take logits [vocab] of at least one token (pass only the rows
// that the tokenizer has: padding of the head is no token), allocate nothing but their result, and
// return kNumeric naming the first token id whose logit is NaN or infinite. Exponentials are f32
// (R4); their sum is f64 in 16 lanes, lane i taking ids i, i+16, … ascending, folded 8-4-2-1 (R2).
base::Result<LogNormaliser> Normalise(std::span<const float> logits);

// ln Σ e^logit.
base::Result<double> LogSumExp(std::span<const float> logits);

// ln softmax(logits)[id]; kUsage if there is no such token.
base::Result<double> LogProb(std::span<const float> logits, base::TokenId id);

// The k most probable tokens, descending, ties to the lower id; kUsage if k exceeds the vocabulary.
base::Result<std::vector<TokenLogProb>> TopLogProbs(std::span<const float> logits, std::size_t k);

}  // namespace kvasir::sampling

#endif  // KVASIR_SAMPLING_LOG_PROBS_H_
