#include "sampling/log_probs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#include "base/check.h"
#include "kernels/scalar_math.h"
#include "kernels/softmax.h"
#include "kernels/weight_sums.h"

namespace kvasir::sampling {
namespace {

// Orders tokens by logit descending, then id ascending, as unsigned numbers descending.
std::uint64_t RankKey(float logit, base::TokenId id) {
  const float positive_zero = logit + 0.0f;  // −0 ties with 0.
  std::uint32_t bits = std::bit_cast<std::uint32_t>(positive_zero);
  bits ^= (bits >> 31) != 0 ? 0xffffffffu : 0x80000000u;
  return std::uint64_t{bits} << 32 | static_cast<std::uint32_t>(~id);
}

// The largest logit; kNumeric naming the first token whose logit is not finite.
base::Result<float> FiniteMax(std::span<const float> logits) {
  KV_CHECK(!logits.empty());
  if (kernels::AllFinite(logits.data(), logits.size())) {
    return kernels::MaxValue(logits.data(), logits.size());
  }
  std::size_t id = 0;
  while (std::isfinite(logits[id])) ++id;
  return base::MakeError(base::ErrorCode::kNumeric,
                         "the logit of token {} is {}: logits must be finite", id, logits[id]);
}

base::TokenId IdOfKey(std::uint64_t key) { return ~static_cast<std::uint32_t>(key); }

}  // namespace

base::Result<LogNormaliser> Normalise(std::span<const float> logits) {
  KV_TRY(const float max, FiniteMax(logits));
  const double sum = kernels::ExpSumF64(logits.data(), logits.size(), max);
  return LogNormaliser{max, kernels::LogF64(sum)};
}

base::Result<double> LogSumExp(std::span<const float> logits) {
  KV_TRY(const LogNormaliser normaliser, Normalise(logits));
  return static_cast<double>(normaliser.max) + normaliser.log_sum;
}

base::Result<double> LogProb(std::span<const float> logits, base::TokenId id) {
  if (id >= logits.size()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "token id {} is outside the vocabulary of {} tokens", id, logits.size());
  }
  KV_TRY(const LogNormaliser normaliser, Normalise(logits));
  return normaliser.LogProb(logits[id]);
}

base::Result<std::vector<TokenLogProb>> TopLogProbs(std::span<const float> logits, std::size_t k) {
  if (k > logits.size()) {
    return base::MakeError(base::ErrorCode::kUsage,
                           "{} most probable tokens were asked for, but the vocabulary has only {}",
                           k, logits.size());
  }
  KV_TRY(const LogNormaliser normaliser, Normalise(logits));
  std::vector<std::uint64_t> keys(logits.size());
  for (std::size_t id = 0; id < keys.size(); ++id) {
    keys[id] = RankKey(logits[id], static_cast<base::TokenId>(id));
  }
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(k), keys.end(),
                    std::greater<>());
  std::vector<TokenLogProb> top;
  top.reserve(k);
  for (std::size_t i = 0; i < k; ++i) {
    const base::TokenId id = IdOfKey(keys[i]);
    const double logprob = normaliser.LogProb(logits[id]);
    top.push_back({id, logprob, kernels::ExpF64(logprob)});
  }
  return top;
}

}  // namespace kvasir::sampling
