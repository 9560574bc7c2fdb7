// How far one distribution of the next token is from another: Kullback-Leibler divergence and
// whether both have the same first choice.
#ifndef KVASIR_EVAL_DIVERGENCE_H_
#define KVASIR_EVAL_DIVERGENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::eval {

// softmax of a row of logits, ready to be compared with others. Reusable; thread-compatible.
class TokenDistribution {
 public:
  // Requires at least one logit, all finite. Keeps a copy of them.
  void Set(std::span<const float> logits);

  std::size_t top() const { return top_; }  // Most probable token; of equal ones the lowest.

  // Σ p ln(p / q) in nats, this one being p: a sum in f64 over tokens ascending of
  // q − p + p ln(p / q), whose terms are never negative and of which, where p and q are close, a
  // series is taken. So equal rows give 0, and what the f32 exponentials are off enters squared:
  // the relative error is below 1e-4. Requires rows of equal length.
  double Divergence(const TokenDistribution& q) const;

 private:
  std::vector<float> logits_;
  std::vector<float> weights_;  // exp(logit − max)
  float max_ = 0;
  double sum_ = 0;      // Of the weights, ascending.
  double log_sum_ = 0;  // ln sum
  std::size_t top_ = 0;
};

// One predicted token under two caches.
struct TokenEvidence {
  double nll = 0;         // Of the token that came, under the second, in nats.
  double divergence = 0;  // KL(first ‖ second)
  bool same_top = false;
};

// Means over tokens; sums are taken in ascending order.
struct TextEvidence {
  std::uint64_t tokens = 0;
  double nll = 0;
  double perplexity = 0;  // e^nll
  double kl_mean = 0;
  double kl_p99 = 0;  // The smallest that at least 99 % of the tokens do not exceed.
  double top1 = 0;    // Share of tokens with the same first choice, 0 … 1.
};
// Requires at least one token.
TextEvidence SumUp(std::span<const TokenEvidence> tokens);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_DIVERGENCE_H_
