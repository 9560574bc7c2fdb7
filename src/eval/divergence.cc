#include "eval/divergence.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/scalar_math.h"
#include "kernels/softmax.h"

namespace kvasir::eval {
namespace {

// e^(−d) − 1 + d for |d| < 0.25, relative error below 1e-10: Taylor up to d^10.
double SmallTerm(double d) {
  constexpr double kCoefficients[] = {1.0 / 3628800, -1.0 / 362880, 1.0 / 40320,
                                      -1.0 / 5040,   1.0 / 720,     -1.0 / 120,
                                      1.0 / 24,      -1.0 / 6,      1.0 / 2};
  double sum = 0;
  for (const double coefficient : kCoefficients) sum = sum * d + coefficient;
  return sum * d * d;
}

}  // namespace

void TokenDistribution::Set(std::span<const float> logits) {
  KV_CHECK(!logits.empty());
  logits_.assign(logits.begin(), logits.end());
  weights_.resize(logits.size());
  max_ = kernels::MaxValue(logits_.data(), logits_.size());
  kernels::SoftmaxWeights(logits_.data(), logits_.size(), max_, 1.0F, weights_.data());
  sum_ = 0;
  for (const float weight : weights_) sum_ += weight;
  log_sum_ = kernels::LogF64(sum_);
  top_ =
      static_cast<std::size_t>(std::find(logits_.begin(), logits_.end(), max_) - logits_.begin());
}

double TokenDistribution::Divergence(const TokenDistribution& q) const {
  KV_CHECK(logits_.size() == q.logits_.size());
  const double offset = (static_cast<double>(q.max_) - max_) + (q.log_sum_ - log_sum_);
  double divergence = 0;
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    const double log_ratio = (static_cast<double>(logits_[i]) - q.logits_[i]) + offset;
    const double p_i = weights_[i] / sum_;
    if (log_ratio > -0.25 && log_ratio < 0.25) {
      divergence += p_i * SmallTerm(log_ratio);
    } else {
      divergence += std::max(0.0, q.weights_[i] / q.sum_ - p_i + p_i * log_ratio);
    }
  }
  return divergence;
}

TextEvidence SumUp(std::span<const TokenEvidence> tokens) {
  KV_CHECK(!tokens.empty());
  TextEvidence text = {.tokens = tokens.size()};
  std::vector<double> divergences;
  divergences.reserve(tokens.size());
  std::uint64_t same = 0;
  for (const TokenEvidence& token : tokens) {
    text.nll += token.nll;
    text.kl_mean += token.divergence;
    same += token.same_top ? 1 : 0;
    divergences.push_back(token.divergence);
  }
  const auto count = static_cast<double>(tokens.size());
  text.nll /= count;
  text.kl_mean /= count;
  text.top1 = static_cast<double>(same) / count;
  text.perplexity = kernels::ExpF64(text.nll);
  // ceil(0.99 n) in integers.
  const std::size_t rank = (tokens.size() * 99 + 99) / 100;
  const auto place = divergences.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(divergences.begin(), place, divergences.end());
  text.kl_p99 = *place;
  return text;
}

}  // namespace kvasir::eval
